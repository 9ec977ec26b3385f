#include "bdforge_llmc.h"
#include "c_api.hpp"
#include "devices.hpp"
#include "whole_matrices.hpp"

using namespace bdforge;
using namespace unit;

namespace {

constexpr int B = 3, T = 7, C = 10, OC = 20, rows = B * T;

/// A layer's matrices, and what llm.c's definitions make of them.
struct Layer {
    std::vector<float> in = whole_numbers(rows * C, 1), weight = whole_numbers(OC * C, 2), bias = whole_numbers(OC, 3),
                       out_grad = whole_numbers(rows * OC, 4), out = std::vector<float>(rows * OC),
                       in_grad = whole_numbers(rows * C, 5), weight_grad = whole_numbers(OC * C, 6),
                       bias_grad = whole_numbers(OC, 7);

    void check_step() {
        std::vector<float> y(rows * OC), dx = in_grad, dw = weight_grad, db = bias_grad;
        for (int row = 0; row < rows; ++row) {
            for (int o = 0; o < OC; ++o) {
                const float grad = out_grad[row * OC + o];
                y[row * OC + o] = bias[o], db[o] += grad;
                for (int c = 0; c < C; ++c) {
                    y[row * OC + o] += in[row * C + c] * weight[o * C + c];
                    dx[row * C + c] += grad * weight[o * C + c];
                    dw[o * C + c] += grad * in[row * C + c];
                }
            }
        }
        matmul_forward(out.data(), in.data(), weight.data(), bias.data(), B, T, C, OC);
        matmul_backward(in_grad.data(), weight_grad.data(), bias_grad.data(), out_grad.data(), in.data(), weight.data(), B,
                        T, C, OC);
        check_equal(out, y, "out");
        check_equal(in_grad, dx, "dinp");
        check_equal(weight_grad, dw, "dweight");
        check_equal(bias_grad, db, "dbias");
    }
};

bdforge_status start(const Design& design, const bdforge_llmc_options* options) {
    bdforge_design handle{design};
    bdforge_design* const handles[] = {&handle};
    return bdforge_llmc_start(handles, 1, options);
}

/// The device's products, the processor's, submissions.
void check_counts(std::size_t products, std::size_t processor, std::size_t submissions) {
    const bdforge_llmc_counts found = bdforge_llmc_counted();
    check_equal(found.products, products, "products");
    check_equal(found.processor_products, processor, "on the processor");
    check_equal(found.submissions, submissions, "submissions");
}

}  // namespace

UNIT_CASE("llmc", a_layer_goes_forward_and_back_on_the_array) {
    const bdforge_llmc_options kept{1, 0};
    check_equal(start(Design::load(unit::emulated_device(), design_path("rcr")), &kept), BDFORGE_OK, "start");
    Layer layer;
    layer.check_step();
    for (float& value : layer.weight) value -= 1;
    bdforge_llmc_updated();
    layer.check_step();
    check_counts(6, 0, 4);
    check_equal(bdforge_llmc_counted().weights, std::size_t{4}, "weights: forward's and backward's form, twice");
    bdforge_llmc_stop();
}

UNIT_CASE("llmc", weights_are_copied_at_each_call_unless_they_are_to_be_kept) {
    check_equal(start(Design::load(unit::emulated_device(), design_path("rcr")), nullptr), BDFORGE_OK, "start");
    Layer layer;
    layer.check_step();
    for (float& value : layer.weight) value -= 1;
    layer.check_step();
    check_equal(bdforge_llmc_counted().weights, std::size_t{0}, "kept");
    check_counts(6, 0, 4);
    bdforge_llmc_stop();
}

UNIT_CASE("llmc", sizes_of_1_are_computed_and_a_bias_may_be_left_out) {
    check_equal(start(Design::load(unit::emulated_device(), design_path("rcr")), nullptr), BDFORGE_OK, "start");
    const float in = 3, weight = -2, bias = 5, grad = 4;
    float out = 9, in_grad = 1, weight_grad = 2, bias_grad = 7;
    matmul_forward(&out, &in, &weight, &bias, 1, 1, 1, 1);
    check_equal(out, -1.0F, "out, with a bias");
    matmul_forward(&out, &in, &weight, nullptr, 1, 1, 1, 1);
    check_equal(out, -6.0F, "out, without");
    matmul_backward(&in_grad, &weight_grad, nullptr, &grad, &in, &weight, 1, 1, 1, 1);
    check_equal(in_grad, -7.0F, "dinp");
    check_equal(weight_grad, 14.0F, "dweight");
    matmul_backward(&in_grad, &weight_grad, &bias_grad, &grad, &in, &weight, 1, 1, 1, 1);
    check_equal(bias_grad, 11.0F, "dbias");
    bdforge_llmc_stop();
}

// What it tells of each goes to stderr, which tests/host/test_training.py reads.
UNIT_CASE("llmc_fallback", without_a_design_everything_is_the_processors) {
    Layer layer;
    layer.check_step();
    layer.check_step();
    check_counts(0, 6, 0);
    matmul_forward(layer.out.data(), layer.in.data(), layer.weight.data(), nullptr, B, T, 0, OC);
    bdforge_llmc_stop();
}

UNIT_CASE("llmc_failure", after_a_failure_the_processor_goes_on) {
    const auto script = std::make_shared<unit::Script>();
    const Design design = Design::load(unit::scripted_device(script, "NPU Phoenix"), design_path("rcr"));
    check_equal(start(design, nullptr), BDFORGE_OK, "start");
    Layer layer;
    layer.check_step();
    script->behaviour = unit::Behaviour::fails;
    layer.check_step();
    script->behaviour = unit::Behaviour::good;
    layer.check_step();
    check_counts(3, 6, 2);
    bdforge_llmc_stop();
}
