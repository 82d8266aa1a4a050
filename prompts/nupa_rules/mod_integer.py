def mod(a, b):
    quotient = floordiv(a, b)
    product = multiply(quotient, b)
    return sub(a, product)

def floordiv(a, b):
    divisor = int(b)
    quotient = ''
    remainder = 0
    while a != '':
        remainder = remainder * 10 + int(a[0])
        a = a[1:]
        digit = 0
        while remainder >= divisor:
            remainder = remainder - divisor
            digit = digit + 1
        quotient = quotient + str(digit)
    quotient = quotient.lstrip('0')
    if quotient == '':
        quotient = '0'
    return quotient

def multiply(a, b):
    result = 0
    shift = ''
    while a != '':
        product = int(a[-1]) * int(b)
        result = result + int(str(product) + shift)
        shift = shift + '0'
        a = a[:-1]
    return str(result)

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
