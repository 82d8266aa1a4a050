def add_float(a, b):
    x = a.split('.')
    y = b.split('.')
    places = max(len(x[1]), len(y[1]))
    a = x[0] + x[1].ljust(places, '0')
    b = y[0] + y[1].ljust(places, '0')
    result = add(a, b)
    return place_point(result, places)

def add(a, b):
    result = ''
    carry = 0
    while a != '' or b != '':
        total = int('0' + a[-3:]) + int('0' + b[-3:]) + carry
        result = str(total % 1000).zfill(3) + result
        carry = total // 1000
        a = a[:-3]
        b = b[:-3]
    result = (str(carry) + result).lstrip('0')
    if result == '':
        result = '0'
    return result

def place_point(digits, places):
    digits = digits.zfill(places + 1)
    decimals = digits[-places:].rstrip('0')
    if decimals == '':
        decimals = '0'
    return digits[:-places] + '.' + decimals
