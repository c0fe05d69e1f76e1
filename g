{"displayTimeUnit":"ms","traceEvents":[
]}
