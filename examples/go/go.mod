module example/server

go 1.19
