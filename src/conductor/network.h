// Network: what the driver does for the traffic with other machines.
#pragma once

#include "conductor/driver_role.h"

namespace farandole::conductor {

class Network {
 public:
  virtual ~Network() = default;

  // poll takes in what has arrived, and returns true if something has; called while the driver is
  // awake. rest is called before the driver sleeps.
  virtual bool poll() REQUIRES(driverRole) = 0;
  virtual void rest() REQUIRES(driverRole) = 0;
  // What is sent between these two calls may leave together.
  virtual void hold() REQUIRES(driverRole) = 0;
  virtual void letGo() REQUIRES(driverRole) = 0;
  // Ends all traffic, when everything fails. Afterwards no memory of an operation is touched.
  virtual void end() REQUIRES(driverRole) = 0;
};

}  // namespace farandole::conductor
