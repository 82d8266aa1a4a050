//! Folders of Hugging Face: configuration, names and layouts of tensors, quantised weights.

pub(super) mod config;
pub(super) mod expert_names;
pub(super) mod experts;
pub(super) mod family;
pub(super) mod files;
pub(super) mod keys;
pub(super) mod layers;
pub(super) mod names;
pub(super) mod quant;
pub(super) mod recent;
pub(super) mod rope;
pub(super) mod sizes;
pub(super) mod weights;
