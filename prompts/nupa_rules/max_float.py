def max_float(a, b):
    x = a.split('.')
    y = b.split('.')
    n = len(x[0])
    m = len(y[0])
    if n > m:
        return a
    if n < m:
        return b
    n = n + max(len(x[1]), len(y[1]))
    u = (x[0] + x[1]).ljust(n, '0')
    v = (y[0] + y[1]).ljust(n, '0')
    i = 0
    while i < n:
        if u[i] > v[i]:
            return a
        if u[i] < v[i]:
            return b
        i = i + 1
    return b
