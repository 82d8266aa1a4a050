def length(a):
    n = 0
    while a != '':
        a = a[1:]
        n = n + 1
    return str(n)
