// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/hello.h"

#include <memory>
#include <poll.h>

namespace vgpu::transport {

void post_hello(ucp_ep_h endpoint, const Hello& hello) {
    auto kept = std::make_unique<Hello>(hello);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    // The reply endpoint tells the listener which of its candidates speaks.
    param.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY;
    param.user_data = kept.get();
    param.cb.send = [](void* request, ucs_status_t, void* user_data) {
        delete static_cast<Hello*>(user_data);
        ucp_request_free(request);
    };
    ucs_status_ptr_t request =
        ucp_am_send_nbx(endpoint, am_hello, nullptr, 0, kept.get(), sizeof(Hello), &param);
    if (UCS_PTR_IS_PTR(request))
        static_cast<void>(kept.release()); // the callback deletes it
}

void set_hello_handler(ucp_worker_h worker, ucp_am_recv_callback_t callback, void* arg) {
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = am_hello;
    param.flags = UCP_AM_FLAG_WHOLE_MSG;
    param.cb = callback;
    param.arg = arg;
    if (ucs_status_t status = ucp_worker_set_am_recv_handler(worker, &param); status != UCS_OK)
        throw TransportError(std::string("UCX takes no handler: ") + ucs_status_string(status));
}

void progress_or_sleep(ucp_worker_h worker, int event_fd) {
    if (ucp_worker_progress(worker) != 0 || ucp_worker_arm(worker) != UCS_OK)
        return;
    pollfd waiting{event_fd, POLLIN, 0};
    poll(&waiting, 1, 10);
}

} // namespace vgpu::transport
