// Network: what the driver does for the traffic with other machines. The driver's alone.
#pragma once

#include "conductor/driver_role.h"

namespace farandole::conductor {

class Network {
 public:
  virtual ~Network() = default;

  // Takes in what has come; true if something did. While the driver is awake; rest() before it
  // sleeps.
  virtual bool poll() REQUIRES(driverRole) = 0;
  virtual void rest() REQUIRES(driverRole) = 0;
  // What is sent between these two may leave together.
  virtual void hold() REQUIRES(driverRole) = 0;
  virtual void letGo() REQUIRES(driverRole) = 0;
  // Ends all traffic, when everything fails: afterwards no memory of an operation is touched.
  virtual void end() REQUIRES(driverRole) = 0;
};

}  // namespace farandole::conductor
