//! Properties of exact numbers at 1 to 100 digits.
use earnest_answer::number::{Decimal, Digitwise, Notation, Number, Rounding};
use num_bigint::BigInt;
use proptest::prelude::*;

fn integer() -> impl Strategy<Value = Number> {
    "[1-9][0-9]{0,99}|0".prop_map(|text| Number::parse(Notation::Integer, &text).unwrap())
}
fn decimal() -> impl Strategy<Value = Number> {
    "([1-9][0-9]{0,99}|0)\\.[0-9]{1,100}".prop_map(|text| Number::parse(Notation::Decimal, &text).unwrap())
}
fn fraction() -> impl Strategy<Value = Number> {
    "[0-9]{1,100}/[0-9]{0,99}[1-9]".prop_map(|text| Number::parse(Notation::Fraction, &text).unwrap())
}
fn scientific() -> impl Strategy<Value = Number> {
    "[1-9]\\.[0-9]{1,100}e-?[0-9]{1,2}".prop_map(|text| Number::parse(Notation::Scientific, &text).unwrap())
}
fn triple() -> impl Strategy<Value = (Number, Number, Number)> {
    prop_oneof![
        (integer(), integer(), integer()),
        (decimal(), decimal(), decimal()),
        (fraction(), fraction(), fraction()),
        (scientific(), scientific(), scientific()),
    ]
}

proptest! {
    #[test]
    fn canonical_text_round_trips((a, b, _) in triple()) {
        for number in [a.clone(), b.clone(), a.subtract(&b).unwrap(), a.multiply(&b).unwrap()] {
            let text = number.to_string();
            let again = Number::parse(number.notation(), &text).unwrap();
            prop_assert_eq!(&again, &number);
            prop_assert_eq!(again.to_string(), text);
        }
    }

    #[test]
    fn ring_identities((a, b, c) in triple()) {
        prop_assert_eq!(a.add(&b).unwrap(), b.add(&a).unwrap());
        prop_assert_eq!(a.multiply(&b).unwrap(), b.multiply(&a).unwrap());
        prop_assert_eq!(a.add(&b).unwrap().subtract(&b).unwrap(), a.clone());
        prop_assert_eq!(a.add(&b).unwrap().add(&c).unwrap(), a.add(&b.add(&c).unwrap()).unwrap());
        let distributed = a.multiply(&c).unwrap().add(&b.multiply(&c).unwrap()).unwrap();
        prop_assert_eq!(a.add(&b).unwrap().multiply(&c).unwrap(), distributed);
        let order = a.compare(&b).unwrap();
        prop_assert_eq!(order.reverse(), b.compare(&a).unwrap());
        prop_assert_eq!(order, a.add(&c).unwrap().compare(&b.add(&c).unwrap()).unwrap());
    }

    #[test]
    fn division_inverts(a in integer(), b in integer(), x in fraction(), y in fraction()) {
        let zero = BigInt::from(0);
        if b != Number::Integer(zero) {
            let (quotient, remainder) = a.floor_divide(&b).unwrap();
            prop_assert_eq!(quotient.multiply(&b).unwrap().add(&remainder).unwrap(), a.clone());
            prop_assert!(remainder.compare(&b).unwrap().is_lt());
        } else {
            prop_assert!(a.floor_divide(&b).is_err());
            prop_assert!(a.true_divide(&b).is_err());
        }
        if let Ok(quotient) = x.true_divide(&y) {
            prop_assert_eq!(quotient.multiply(&y).unwrap(), x);
        }
    }

    #[test]
    fn notations_keep_the_value(a in decimal(), s in scientific()) {
        prop_assert_eq!(a.to_scientific().unwrap().to_decimal().unwrap(), a);
        prop_assert_eq!(s.to_decimal().unwrap().to_scientific().unwrap(), s);
    }

    #[test]
    fn digitwise_bounds(a in decimal(), b in decimal()) {
        let largest = a.digitwise(Digitwise::Max, &b).unwrap();
        let smallest = a.digitwise(Digitwise::Min, &b).unwrap();
        prop_assert!(largest.compare(&a).unwrap().is_ge() && largest.compare(&b).unwrap().is_ge());
        prop_assert!(smallest.compare(&a).unwrap().is_le() && smallest.compare(&b).unwrap().is_le());
        prop_assert_eq!(largest.add(&smallest).unwrap(), a.add(&b).unwrap());
        prop_assert_eq!(a.digitwise(Digitwise::Max, &a).unwrap(), a.clone());
        prop_assert_eq!(a.digitwise(Digitwise::AddModulo10, &b).unwrap(), b.digitwise(Digitwise::AddModulo10, &a).unwrap());
    }

    #[test]
    fn rounding_is_nearest(a in decimal(), figures in 1usize..60) {
        let Number::Decimal(value) = &a else { unreachable!() };
        if !value.is_zero() {
            let text = a.to_significant(figures, Rounding::HalfUp).unwrap();
            let rounded = Decimal::parse_scientific(&text).unwrap();
            prop_assert_eq!(text.split(['e']).next().unwrap().len(), figures.max(2) + 1);
            let exponent: i64 = text.split('e').nth(1).unwrap().parse().unwrap();
            let half_unit = Decimal::new(BigInt::from(5), exponent - figures as i64).unwrap();
            let error = if &rounded > value { &rounded - value } else { value - &rounded };
            prop_assert!(error <= half_unit);
        }
    }

    #[test]
    fn digits_are_counted(a in integer()) {
        let count = a.digit_count().unwrap();
        prop_assert_eq!((0..10).map(|digit| a.occurrences(digit).unwrap()).sum::<usize>(), count);
        prop_assert_eq!((0..count).map(|i| a.digit_at(i).unwrap().to_string()).collect::<String>(), a.to_string());
        prop_assert!(a.digit_at(count).is_err());
        prop_assert!(a.occurrences(10).is_err());
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,12}|[0-9./e-]{0,12}") {
        for notation in [Notation::Integer, Notation::Decimal, Notation::Fraction, Notation::Scientific] {
            let _ = Number::parse(notation, &text);
        }
    }
}
