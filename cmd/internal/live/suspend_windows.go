package live

// Windows has no job control.
func (s *screen) jobs() {}

func (s *screen) suspend() bool { return false }
