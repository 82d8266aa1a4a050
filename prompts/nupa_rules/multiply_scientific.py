def multiply_scientific(a, b):
    x = a.split('e')
    y = b.split('e')
    exponent = int(x[1]) + int(y[1])
    result = multiply_float(x[0], y[0])
    return normalise(result, exponent)

def multiply_float(a, b):
    x = a.split('.')
    y = b.split('.')
    places = len(x[1]) + len(y[1])
    result = multiply(x[0] + x[1], y[0] + y[1])
    return place_point(result, places)

def multiply(a, b):
    result = 0
    shift = ''
    while a != '':
        product = int(a[-1]) * int(b)
        result = result + int(str(product) + shift)
        shift = shift + '0'
        a = a[:-1]
    return str(result)

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
