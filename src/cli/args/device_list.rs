//! The list of `--devices`.
use std::str::FromStr;

use earnest_eval::model::DeviceChoice;

/// Devices of `--devices`, e.g. `0,1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceList(pub Vec<DeviceChoice>);

impl FromStr for DeviceList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |word: &str| match word.parse::<u16>() {
            Ok(number) => Ok(DeviceChoice::Cuda(number.into())),
            Err(_) => word
                .parse::<DeviceChoice>()
                .ok()
                .filter(|device| *device != DeviceChoice::Auto)
                .ok_or_else(|| format!("{word} is not a device: name GPUs by number, e.g. 0,1")),
        };
        let devices = text.split(',').map(|word| one(word.trim())).collect::<Result<Vec<_>, String>>()?;
        let twice = |device: &DeviceChoice| {
            *device != DeviceChoice::Cpu && devices.iter().filter(|other| *other == device).count() > 1
        };
        if let Some(device) = devices.iter().find(|device| twice(device)) {
            return Err(format!("{} is named twice", device_name(*device)));
        }
        let is_gpu = |device: &DeviceChoice| matches!(device, DeviceChoice::Cuda(_));
        if devices.iter().any(is_gpu) && !devices.iter().all(is_gpu) {
            return Err("a run is computed on GPUs or on CPUs: they round differently".to_owned());
        }
        Ok(DeviceList(devices))
    }
}

/// Name of a device, as the options take it.
pub fn device_name(device: DeviceChoice) -> String {
    match device {
        DeviceChoice::Cuda(number) => format!("cuda:{number}"),
        DeviceChoice::Cpu => "cpu".to_owned(),
        DeviceChoice::Auto => "auto".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_numbers_of_gpus() {
        let list = |text: &str| text.parse::<DeviceList>().map(|list| list.0);
        assert_eq!(list("0,1"), Ok(vec![DeviceChoice::Cuda(0), DeviceChoice::Cuda(1)]));
        assert_eq!(list("cuda:3, 2"), Ok(vec![DeviceChoice::Cuda(3), DeviceChoice::Cuda(2)]));
        assert_eq!(list("cpu,cpu"), Ok(vec![DeviceChoice::Cpu; 2]));
        assert_eq!(list("1,cuda:1").unwrap_err(), "cuda:1 is named twice");
        assert!(list("0,cpu").unwrap_err().contains("round differently"));
        assert!(["", "0,", "auto", "0,x"].iter().all(|text| list(text).unwrap_err().contains("not a device")));
    }
}
