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
