def sub_scientific(a, b):
    x = a.split('e')
    y = b.split('e')
    m = int(x[1])
    n = int(y[1])
    u = x[0]
    v = y[0]
    if m > n:
        u = shift_right(u, m - n)
        m = n
    if m < n:
        v = shift_right(v, n - m)
    result = sub_float(u, v)
    return normalise(result, m)

def shift_right(number, places):
    x = number.split('.')
    decimals = x[1].ljust(places, '0')
    return x[0] + decimals[:places] + '.' + decimals[places:] + '0'

def sub_float(a, b):
    x = a.split('.')
    y = b.split('.')
    places = max(len(x[1]), len(y[1]))
    a = x[0] + x[1].ljust(places, '0')
    b = y[0] + y[1].ljust(places, '0')
    result = sub(a, b)
    return place_point(result, places)

def sub(a, b):
    result = ''
    borrow = 0
    while a != '':
        difference = int('0' + a[-3:]) - int('0' + b[-3:]) - borrow
        borrow = 0
        if difference < 0:
            difference = difference + 1000
            borrow = 1
        result = str(difference).zfill(3) + result
        a = a[:-3]
        b = b[:-3]
    result = result.lstrip('0')
    if result == '':
        result = '0'
    return result

def place_point(digits, places):
    digits = digits.zfill(places + 1)
    decimals = digits[-places:].rstrip('0')
    if decimals == '':
        decimals = '0'
    return digits[:-places] + '.' + decimals

def normalise(number, exponent):
    x = number.split('.')
    exponent = exponent + len(x[0]) - 1
    digits = (x[0] + x[1]).rstrip('0')
    if digits == '':
        return '0.0e0'
    while digits[0] == '0':
        digits = digits[1:]
        exponent = exponent - 1
    decimals = digits[1:]
    if decimals == '':
        decimals = '0'
    return digits[0] + '.' + decimals + 'e' + str(exponent)
