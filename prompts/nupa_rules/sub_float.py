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
