"""Bubblewrap, bare process and fake against the contract. Podman's is in test_podman.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import pytest

from codetape.adapters.sandbox.bubblewrap import BubblewrapSandbox
from codetape.adapters.sandbox.cgroups import find_parents
from codetape.adapters.sandbox.fake import FakeSandbox
from codetape.adapters.sandbox.process import ProcessSandbox
from codetape.engine.ports import Sandbox
from codetape.testing.sandboxes import ISOLATION, HarmContract, SandboxContract

NO_GROUPS = "no control group can be written: the limit is one per process, and leaves no evidence"
UNSEEN = "no control group can be written: who leaves session, parent and variables is not found"
MEMORY = (
    "test_memory_is_limited",
    "test_memory_of_a_child_counts",
    "test_memory_that_ran_out_in_a_child_ends_the_run",
    "test_a_limit_of_memory_that_is_kept_is_not_told_as_passed",
)
GROUPS = find_parents().folders
UNCOUNTED = {} if "memory" in GROUPS else dict.fromkeys(MEMORY, NO_GROUPS)


COUNTED = dict.fromkeys(
    ("test_refused_processes_are_counted", "test_without_a_refusal_there_is_none"), NO_GROUPS
)
COMPUTED = dict.fromkeys(
    ("test_computing_is_told_from_waiting",), "no control group can be written: unknown"
)
SHARED = dict.fromkeys(("test_the_share_of_the_processor_is_limited",), NO_GROUPS)
UNCOUNTED |= {} if "pids" in GROUPS else COUNTED
UNCOUNTED |= {} if "cpuacct" in GROUPS else COMPUTED
UNCOUNTED |= {} if "cpu" in GROUPS else SHARED


@pytest.mark.bubblewrap
class TestBubblewrap(HarmContract, SandboxContract):
    gaps: ClassVar[dict[str, str]] = UNCOUNTED

    def make_sandbox(self, folder: Path) -> Sandbox:
        return BubblewrapSandbox(environments=folder)


OF_ROOT = {
    "test_nobody_becomes_root": "it is root",
    "test_no_setuid_program_gives_rights": "it is root",
    "test_the_runner_cannot_be_read": "it is root, who reads every process",
}


@pytest.mark.slow
class TestProcess(SandboxContract):
    gaps: ClassVar[dict[str, str]] = {
        **UNCOUNTED,
        **({} if "pids" in GROUPS else {"test_processes_are_limited": NO_GROUPS}),
        **({} if os.geteuid() else {"test_the_user_is_not_root": "it is the user who calls"}),
        **({} if GROUPS else {"test_the_limit_of_time_ends_who_left_no_trace": UNSEEN}),
        "test_there_is_no_network": "the network is that of the machine",
        "test_keys_and_unusual_sockets_are_refused": "it has the rights of the user",
        "test_there_is_only_the_loopback_device": "the network is that of the machine",
        "test_files_of_the_host_are_not_there": "the files are those of the machine",
        "test_root_and_inputs_are_read_only": "what the user may write, the code may write",
        "test_temporary_files_are_private": "/tmp is that of the machine",
        "test_there_are_no_capabilities_and_no_new_privileges": "it has the rights of the user",
        "test_no_namespace_gives_new_rights": "it has the rights of the user",
        "test_sockets_of_the_host_are_not_there": "the network is that of the machine",
        "test_processes_of_the_host_are_not_there": "the processes are those of the machine",
        "test_sockets_lead_to_no_other_machine": "it makes all calls of the user",
        "test_keys_do_not_outlive_a_run": "it makes all calls of the user",
        "test_refused_calls_have_no_other_way": "it makes all calls of the user",
        **({} if os.geteuid() else OF_ROOT),
    }

    def make_sandbox(self, folder: Path) -> Sandbox:
        return ProcessSandbox(environments=folder)


def test_no_gap_of_bubblewrap_touches_isolation() -> None:
    assert {*ISOLATION} & {*TestBubblewrap.gaps} == set()


KEPT_BY_THE_FAKE = {
    "test_a_spec_without_packages_finds_the_sandbox",
    "test_a_sandbox_is_closed_twice_and_then_refuses",
    "test_the_host_has_no_new_open_descriptors",
    "test_no_test_is_no_result",
    "test_an_honest_solution_is_trusted",
    "test_a_forked_test_reports_once",
    "test_the_runner_cannot_be_imported",
    "test_a_report_cannot_be_read_or_taken_back",
    "test_the_runner_is_not_among_the_objects_that_are_found",
    "test_no_null_solution_runs_unless_it_is_asked_for",
    "test_a_script_that_a_test_starts_is_null_too",
    "test_each_run_begins_as_the_first_did",
    "test_lines_that_tests_write_tell_of_no_null_solution",
}


class TestFake(SandboxContract):
    gaps: ClassVar[dict[str, str]] = {
        name: "nothing runs: what a run says is what the script of the test says"
        for name in dir(SandboxContract)
        if name.startswith("test_") and name not in KEPT_BY_THE_FAKE
    }

    def make_sandbox(self, folder: Path) -> Sandbox:
        return FakeSandbox()
