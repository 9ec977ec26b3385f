#include "layer_roles.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "bdforge/error.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

using Names = std::map<std::string, std::string>;

/// The roles that a composition's document says, by tensor; none where it is another kind of design.
Names told(const LoadedManifest& manifest) {
    Names found;
    const JsonView document = manifest.view().at("document");
    if (manifest.kind != "composition" || !document.has("roles")) return found;
    for (const auto& [tensor, role] : document.at("roles").members()) found[tensor] = role.text();
    return found;
}

/// Takes an end off a text, if it is there.
bool take_end(std::string& text, std::string_view end) {
    if (!text.ends_with(end)) return false;
    text.resize(text.size() - end.size());
    return true;
}

/// What a role says of matrices; of others none.
LayerRoles::Weight weight_of(const std::string& tensor, std::string role) {
    LayerRoles::Weight made{tensor, {}, false, false};
    made.before = take_end(role, " scales before");
    made.scales = made.before || take_end(role, " scales");
    for (std::size_t first = 0; first <= role.size();) {
        const std::size_t end = std::min(role.find('+', first), role.size());
        made.matrices.push_back(role.substr(first, end - first));
        if (std::find(matrix_roles.begin(), matrix_roles.end(), made.matrices.back()) == matrix_roles.end()) return {};
        first = end + 1;
    }
    return made;
}

std::ptrdiff_t times(const LayerRoles& roles, const std::string& matrix) {
    std::ptrdiff_t found = 0;
    for (const LayerRoles::Weight& weight : roles.weights)
        if (!weight.scales) found += std::count(weight.matrices.begin(), weight.matrices.end(), matrix);
    return found;
}

/// Adds the names that a table lacks.
void lacking(const Names& table, const std::vector<std::string>& needed, std::vector<std::string>& odd) {
    std::copy_if(needed.begin(), needed.end(), std::back_inserter(odd),
                 [&](const std::string& role) { return !table.contains(role); });
}

/// What shares a buffer with a cache would be each layer's own.
void check_places(const LoadedManifest& manifest, const LayerRoles& roles) {
    const sequence::Program& program = manifest.source.program;
    std::vector<std::string> parameters = program.parameters;
    std::sort(parameters.begin(), parameters.end());
    if (parameters != std::vector<std::string>{"keys"} && parameters != std::vector<std::string>{"keys", "tokens"})
        throw ArgumentError("design " + manifest.design + " has parameters " + listed(parameters) +
                            "; a layer of BitNet has tokens and keys, or keys alone");
    const auto place = [&](const std::string& tensor) {
        const auto named = [&](const sequence::Operand& operand) { return operand.name == tensor; };
        return std::find_if(program.operands.begin(), program.operands.end(), named)->argument;
    };
    std::vector<std::string> shared{roles.given.at("angles")};
    for (const char* role : {"states", "product", "product_scales"})
        shared.insert(shared.end(), {roles.given.at(role), roles.made.at(role)});
    for (const std::string& tensor : shared)
        for (const char* cache : {"key_cache", "value_cache"})
            if (place(tensor) == place(roles.given.at(cache)))
                throw ArgumentError("design " + manifest.design + ": a cache lies in one buffer with " + tensor +
                                    ", which all layers share; give " + tensor +
                                    " another one below [buffers], and compose it again");
}

/// What a composition is, the example of it, and the roles that it must be given and make; a layer is given matrices, too.
struct Wanted {
    const char *what, *file;
    std::vector<std::string> given, made;
    bool matrices;
};

const std::vector<std::string> carried{"states", "product", "product_scales"};

std::vector<std::string> with_carried(std::vector<std::string> others) {
    others.insert(others.begin(), carried.begin(), carried.end());
    return others;
}

LayerRoles found_roles(const LoadedManifest& manifest, const Wanted& wanted) {
    const Names roles = told(manifest);
    const std::vector<std::string>& needed = wanted.given;
    std::vector<std::string> odd;
    LayerRoles found;
    for (const sequence::Operand& operand : manifest.source.program.operands) {
        const auto role = roles.find(operand.name);
        if (operand.between || (operand.out && role == roles.end())) continue;
        const LayerRoles::Weight weight = role == roles.end() || !wanted.matrices
                                              ? LayerRoles::Weight{}
                                              : weight_of(operand.name, role->second);
        const bool known = role != roles.end() && (!weight.matrices.empty() || std::find(needed.begin(), needed.end(),
                                                                                         role->second) != needed.end());
        if (operand.out)
            found.made[role->second] = operand.name;
        else if (!known || !found.given.emplace(role->second, operand.name).second)
            odd.push_back(operand.name);
        else if (!weight.matrices.empty())
            found.weights.push_back(weight);
    }
    for (const char* matrix : matrix_roles)
        if (wanted.matrices && times(found, matrix) != 1) odd.emplace_back(matrix);
    lacking(found.given, needed, odd), lacking(found.made, wanted.made, odd);
    if (!odd.empty())
        throw ArgumentError(concat("design ", manifest.design, " is no ", wanted.what, " of BitNet: ", listed(odd),
                                   "; examples/layer/", wanted.file, ".toml has the roles of its tensors"));
    return found;
}

}  // namespace

LayerRoles layer_roles(const LoadedManifest& manifest) {
    std::vector<std::string> given = with_carried({"angles"});
    given.insert(given.end(), norm_roles.begin(), norm_roles.end());
    given.insert(given.end(), {"key_cache", "value_cache"});
    const LayerRoles found =
        found_roles(manifest, {"layer", "bitnet", given, with_carried({"keys", "values"}), true});
    check_places(manifest, found);
    return found;
}

bool is_head(const LoadedManifest& manifest) {
    const Names roles = told(manifest);
    return std::any_of(roles.begin(), roles.end(), [](const auto& role) { return role.second == "logits"; });
}

LayerRoles head_roles(const LoadedManifest& manifest) {
    const std::vector<std::string> own{"down scales before", "final_norm", "head", "head scales"};
    return found_roles(manifest, {"head", "bitnet_head", with_carried(own), {"logits"}, false});
}

namespace {

[[noreturn]] void refuse_fact(const std::string& design, const std::string& fact, const std::string& has,
                              const std::string& wants) {
    throw ArgumentError("design " + design + " has " + fact + " = " + has + ", this model " + wants);
}

/// A number with six digits.
std::string short_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", number);
    return text;
}

/// A design's sizes as its spec says them; what it does not say is the model's.
void check_sizes(const std::string& design, const JsonView& spec, const std::map<std::string, std::size_t>& sizes) {
    for (const auto& [name, size] : sizes) {
        if (!spec.has(name)) continue;
        const auto found = static_cast<std::size_t>(spec.at(name).integer(0, INT64_MAX));
        if (found != size) refuse_fact(design, name, std::to_string(found), std::to_string(size));
    }
}

void check_spec(const std::string& design, const JsonView& spec, const LayerModel& model) {
    const std::string& kind = spec.at("kind").text();
    if (kind == "rows" && spec.has("epsilon")) {
        const double epsilon = spec.at("epsilon").real();
        if (static_cast<float>(epsilon) != model.epsilon)
            refuse_fact(design, "epsilon", short_text(epsilon), short_text(static_cast<double>(model.epsilon)));
    }
    if (kind != "attention") return;
    if (spec.has("causal") && !spec.at("causal").boolean()) refuse_fact(design, "causal", "false", "true");
    check_sizes(design, spec,
                {{"heads", model.heads}, {"kv_heads", model.key_heads}, {"head_dim", model.head_size}, {"window", 0}});
}

/// What a design gates with, "" where it gates nothing.
std::string gate_of(const JsonView& spec) {
    const std::string& kind = spec.at("kind").text();
    if (kind == "gemm" && spec.at("epilogue").has("gate")) return spec.at("epilogue").at("gate").text();
    if (kind != "elementwise") return "";
    std::string function = spec.at("function").text();
    return take_end(function, "_gate") ? function : "";
}

}  // namespace

void check_model(const LoadedManifest& manifest, const LayerModel& model) {
    bool gated = false;
    for (const auto& [name, design] : manifest.view().at("document").at("designs").members()) {
        const JsonView document = design.at("document");
        if (!document.has("made_from")) continue;
        const JsonView spec = document.at("made_from");
        check_spec(name, spec, model);
        gated = gated || gate_of(spec) == model.gate;
    }
    if (!gated && !is_head(manifest))
        throw ArgumentError("design " + manifest.design + ": none of its products has the gate " + model.gate +
                            " of this model");
}

namespace {

/// The number of a macro NAME=NUMBER; 0 where it is another one.
std::size_t number_of(const std::string& macro, std::string_view name) {
    std::size_t found = 0;
    if (macro.starts_with(name)) std::from_chars(macro.data() + name.size(), macro.data() + macro.size(), found);
    return found;
}

}  // namespace

AttentionTile attention_tile(const LoadedManifest& manifest) {
    AttentionTile found;
    for (const auto& [name, design] : manifest.view().at("document").at("designs").members()) {
        if (design.at("kind").text() != "attention") continue;
        for (const JsonView& macro : design.at("document").at("macros").elements()) {  // of its kernels
            found.queries = std::max(found.queries, number_of(macro.text(), "DIM_M="));
            found.keys = std::max(found.keys, number_of(macro.text(), "DIM_N="));
        }
    }
    return found;
}

}  // namespace bdforge
