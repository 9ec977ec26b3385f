// Runs and chains of them, on commands that do what a case says.

#include "execution.hpp"

#include <thread>

#include "bdforge/error.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;
using std::chrono::milliseconds;

namespace {

/// What a command does, and the time-outs that its waits were given.
struct Acts {
    bool starts = true;
    std::vector<std::string> waits;  // "ends", "runs" or "fails", the next one last
    std::vector<milliseconds> timeouts;
    milliseconds takes{0};
};

class ActingCommand final : public Command {
public:
    explicit ActingCommand(Acts& acts) : acts_(acts) {}

    void start() override {
        if (!acts_.starts) throw RunError("it does not start");
    }
    Outcome wait(milliseconds timeout) override {
        acts_.timeouts.push_back(timeout);
        std::this_thread::sleep_for(acts_.takes);
        const std::string next = acts_.waits.empty() ? "ends" : acts_.waits.back();
        if (!acts_.waits.empty()) acts_.waits.pop_back();
        if (next == "fails") throw RunError("it failed");
        return next == "ends" ? Outcome::completed : Outcome::timed_out;
    }

private:
    Acts& acts_;
};

Execution execution_of(Acts& acts, bool one = true) { return Execution(std::make_unique<ActingCommand>(acts), "the work", one); }

/// Prepares chains and nothing else.
class ChainContext final : public Context {
public:
    explicit ChainContext(Acts& chains) : chains_(chains) {}

    std::unique_ptr<Command> batch(const std::vector<Command*>&) override { return std::make_unique<ActingCommand>(chains_); }
    std::shared_ptr<Buffer> allocate(std::size_t, std::size_t) override { return nullptr; }
    std::shared_ptr<Buffer> adopt(std::size_t, void*, std::size_t) override { return nullptr; }
    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>&) override { return nullptr; }
    std::unique_ptr<Command> command(const Stream&, const Arguments&) override { return nullptr; }

private:
    Acts& chains_;
};

bool again(std::size_t, std::size_t) { return true; }

}  // namespace

UNIT_CASE("execution", time_outs_begin_at_a_millisecond) {
    Acts acts;
    Execution execution = execution_of(acts);
    execution.check(milliseconds{1});
    for (const int none : {0, -1})
        check_contains(message_of<ArgumentError>([&] { execution.check(milliseconds{none}); }),
                       "the work: a time-out of " + std::to_string(none) + " ms would wait for ever");
    execution.start();
    check_contains(message_of<ArgumentError>([&] { execution.wait(milliseconds{0}); }), "would wait for ever");
    check_equal(acts.timeouts.size(), 0U, "waits of the device");
    execution.wait(milliseconds{1});
}

UNIT_CASE("execution", what_did_not_start_is_not_running) {
    Acts acts;
    acts.starts = false;
    Execution execution = execution_of(acts);
    check_contains(message_of<RunError>([&] { execution.start(); }), "does not start");
    check_equal(execution.running(), false, "running");
    check_contains(message_of<StateError>([&] { execution.wait(milliseconds{1}); }), "the work was not started");
    acts.starts = true;
    execution.start();
    check_equal(execution.running(), true, "running, once it starts");
    check_contains(message_of<StateError>([&] { execution.start(); }), "the work is running");
    execution.wait(milliseconds{1});
    check_equal(execution.running(), false, "running, when it ended");
    check_contains(message_of<StateError>([&] { execution.wait(milliseconds{1}); }), "the work was not started");
}

UNIT_CASE("execution", only_what_has_ended_as_a_whole_is_dropped) {
    struct {
        const char *how, *wait, *drop;  // what the wait for it finds, and the look before it is dropped; "" for none
        bool one, several;              // whether one run is dropped then, and several
    } const cases[] = {
        {"ended", "ends", "", true, true},         {"failed", "fails", "", true, false},
        {"still runs", "runs", "runs", false, false}, {"ended since", "runs", "ends", true, true},
        {"failed since", "runs", "fails", true, false}, {"never awaited, ended", "", "ends", true, true},
        {"never awaited, runs", "", "runs", false, false},
    };
    for (const auto& [how, wait, drop, one_dropped, several_dropped] : cases) {
        for (const bool one : {true, false}) {
            Acts acts;
            Execution execution = execution_of(acts, one);
            check_equal(execution.droppable(), true, "never started");
            execution.start();
            acts.waits = {drop, wait};
            if (*wait == '\0') acts.waits.pop_back();
            try {
                if (*wait != '\0') execution.wait(milliseconds{1});
            } catch (const Error&) {
                check_equal(execution.running(), *wait == 'r', std::string(how) + ": running");
            }
            check_equal(execution.droppable(), one ? one_dropped : several_dropped, std::string(how) + (one ? ", one" : ", several"));
        }
    }
}

UNIT_CASE("execution", no_wait_within_chains_is_for_ever) {
    Acts chained, alone;
    ChainContext context(chained);
    ActingCommand command(alone);
    Chains chains(context, std::vector<Command*>(25, &command), again);
    chained.takes = milliseconds{3};
    chained.waits = {"fails", "ends"};  // the second of two: its command then runs alone
    chains.start();
    check_equal(chains.wait(milliseconds{1}) == Outcome::completed, true, "ends, however late");
    check_equal(chained.timeouts.size(), 2U, "waits for chains");
    check_equal(alone.timeouts.size(), 1U, "waits for commands alone");
    for (const auto* waits : {&chained.timeouts, &alone.timeouts})
        for (const milliseconds timeout : *waits) check_equal(timeout.count(), 1, "time-out, ms, with none left");
    check_equal(chains.note(), "commands 25 to 25 of 25 ran one by one, since their chain failed: it failed", "note");
}

UNIT_CASE("execution", a_chain_that_fails_takes_no_wait_from_the_others) {
    Acts chained, alone;
    ChainContext context(chained);
    ActingCommand command(alone);
    Chains chains(context, std::vector<Command*>(25, &command), again);
    for (const std::size_t run : {1, 2}) {
        if (run == 1) chained.waits = {"ends", "fails"};  // the first of two: its commands then run alone
        chains.start();
        check_equal(chains.wait(milliseconds{1000}) == Outcome::completed, true, "ends");
        const std::string when = run == 1 ? ", of the run whose first one failed" : ", of that and a run behind it";
        check_equal(chained.timeouts.size(), 2 * run, "waits for chains" + when);
        check_equal(alone.timeouts.size(), std::size_t{24}, "waits for commands alone" + when);
    }
    check_equal(chains.note(), "", "note of a run behind one that failed");
}
