package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// What Argo CD takes for a health: https://github.com/argoproj/argo-cd/blob/master/gitops-engine/pkg/health/health.go
var healths = []string{"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"}

// runHealth runs a script as Argo CD runs those that users configure: with the libraries base, package and table alone, and for a
// second at most. See https://github.com/argoproj/argo-cd/blob/master/util/lua/lua.go
func runHealth(script string, object map[string]any) (*verdict, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage,
		lua.BaseLibName: lua.OpenBase,
		lua.TabLibName:  lua.OpenTable,
	} {
		call := lua.P{Fn: state.NewFunction(open), NRet: 0, Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return nil, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("the script returns %s, not a table", state.Get(-1).Type())
	}
	result := &verdict{}
	if err := readTable(table, result); err != nil {
		return nil, err
	}
	if !slices.Contains(healths, result.Status) {
		return nil, fmt.Errorf("%q is no health", result.Status)
	}
	return result, nil
}

// readTable refuses what Argo CD would drop without a word.
func readTable(table *lua.LTable, into *verdict) error {
	var failure error
	table.ForEach(func(key, value lua.LValue) {
		text, ok := value.(lua.LString)
		switch {
		case !ok:
			failure = fmt.Errorf("%s is a %s", key, value.Type())
		case key.String() == "status":
			into.Status = string(text)
		case key.String() == "message":
			into.Message = string(text)
		default:
			failure = fmt.Errorf("%s is no part of a health", key)
		}
	})
	return failure
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case bool:
		return lua.LBool(typed)
	case string:
		return lua.LString(typed)
	case int64:
		return lua.LNumber(typed)
	case float64:
		return lua.LNumber(typed)
	case []any:
		table := state.CreateTable(len(typed), 0)
		for _, item := range typed {
			table.Append(toLua(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(typed))
		for key, item := range typed {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
