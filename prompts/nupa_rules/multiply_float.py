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
