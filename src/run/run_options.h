// What the options of `farandole run` say, as they were typed.
#pragma once

#include <string>
#include <vector>

namespace farandole::run {

struct RunOptions {
  std::string ranks;  // "": one per slot
  // where
  std::string hosts;
  std::string hostFile;
  std::string discoveryScript;
  std::string slotsPerHost;  // of hosts that are given without
  std::string ranksPerHost;  // of all hosts, whatever their slots
  std::string sshPort;
  std::string identityFile;
  bool acceptNewHostKeys = false;
  std::string connectTimeout = "10";
  std::string waitForHosts = "0";
  bool push = false;
  bool noPush = false;
  std::string interfaces;
  std::string masterAddress;
  std::string masterPort;
  // how they share the machines
  std::string mapBy = "slot";
  std::string bindTo = "none";
  std::string cpus;
  std::string threads;
  bool displayMap = false;
  bool displayMapOmpi = false;
  // with what
  std::vector<std::string> environment;  // NAME=value
  std::vector<std::string> exported;     // NAME or NAME=value
  std::string folder;
  std::string ddpBackend;
  std::string malloc;
  // what is shown
  std::string shownRanks;
  bool noPrefix = false;
  bool tag = false;
  bool timestamp = false;
  std::string outputFolder;
  bool quiet = false;
  bool verbose = false;
  // how ranks are connected
  std::string engine;
  std::string mpi;
  bool noHierarchy = false;
  std::string wireSecurity;
  std::string wire;
  std::string dataPorts;
  std::string lanes;
  std::string advertise;
  // how it is supervised
  std::string grace = "5";
  std::string startTimeout;
  std::string maxRestarts = "0";
  bool requireInit = false;
  bool requireLogs = false;
  bool dryRun = false;
  std::string timeline;
  std::string stallWarning;
  std::string stallShutdown;

  std::vector<std::string> command;
};

}  // namespace farandole::run
