#pragma once
#include <memory>

#include "link.hpp"

namespace bdforge::emulated {

/// The device server: the one that BDFORGE_DEVICE_SOCKET names, or else one of this process, which all its devices share.
class Server {
public:
    Server() = default;
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    virtual ~Server() = default;

    /// A new connection; DeviceError when nobody is there.
    virtual File connect() = 0;
};

/// DeviceError names what is missing and the next step.
std::shared_ptr<Server> reach_server();

}  // namespace bdforge::emulated
