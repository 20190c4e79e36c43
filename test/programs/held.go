package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var held [][]byte

func hold() {
	for i := 0; i < 32; i++ {
		held = append(held, make([]byte, 1<<20))
	}
}

func main() {
	runtime.MemProfileRate = 1
	hold()
	runtime.GC()
	file, _ := os.Create(os.Args[1])
	pprof.WriteHeapProfile(file)
	file.Close()
	runtime.KeepAlive(held)
}
