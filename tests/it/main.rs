//! Tests of the program and of crates together, in one executable.

mod arithmetic_bench_summary;
mod batch_invariance;
mod bench_engine;
mod bench_latency;
mod bench_program;
mod built_in;
mod chat_templates;
mod checkpoint_chat;
mod checkpoint_folder;
mod checkpoint_gguf;
mod checkpoint_golden;
mod checkpoint_models;
mod cli;
mod cuda_cli;
mod cuda_libraries;
mod dnc_properties;
mod dnc_reference;
mod dnc_screens;
mod endpoint;
mod exact_expression;
mod experiment_cli;
mod fake_hub;
mod glmm_behaviour;
mod glmm_golden;
mod golden_contract;
mod gsm_cli;
mod gsm_symbolic;
mod gsm_symbolic_cli;
mod gsm_symbolic_study;
mod holm_published;
mod interruptions;
mod ks_scipy;
mod loopback;
mod models_cli;
mod models_memory;
mod models_screens;
mod native_engine;
mod number_properties;
mod nupa_cli;
mod nupa_generators;
mod nupa_rules_cpython;
mod nupa_screens;
mod profiles;
mod program;
mod real_checkpoints;
mod report;
mod results_cli;
mod run;
mod screens;
mod self_contained;
mod serve_http;
mod small_suite;
mod serve_screens;
mod stats_cli;
mod store;
mod support;
mod synthetic;
mod train;
mod train_cli;
mod train_lora;
mod train_lora_cli;

// A subject uses a part of what the golden vectors' own program needs.
#[allow(dead_code)]
#[path = "../golden_subjects/mod.rs"]
mod golden_subjects;
