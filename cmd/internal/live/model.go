package live

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/stsmigrate/stsmigrate/internal/view"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Actions is what the keys do.
type Actions struct {
	// Pause requests a pause.
	Pause func() error
	// Leave ends the command. Interrupt does what a signal does.
	Leave, Interrupt func()
	// Warning returns what is asked before Leave. It is nil if nothing is lost by leaving; otherwise the command also
	// goes on without its terminal.
	Warning func() string
}

// question is what the user is asked to confirm.
type question int

const (
	none question = iota
	mayPause
	mayLeave
)

// model is the state of the screen.
type model struct {
	migration view.Migration
	known     bool // a moment was read
	size      view.Size
	style     view.Style
	now       func() time.Time
	do        Actions
	explains  bool
	asks      question
	notice    string
	last      string      // event
	over      bool        // the last frame: nothing can be typed any more
	suspend   func() bool // asks for a stop of this process; reports whether it can be stopped
}

type (
	showMsg   view.Migration
	noticeMsg string
	lastMsg   string
	tickMsg   struct{}
	overMsg   struct{}
)

func tick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return tick() }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.size = view.Size{Width: msg.Width, Height: msg.Height}
	case showMsg:
		m.migration, m.known = view.Migration(msg), true
	case noticeMsg:
		m.notice = plans.Line(string(msg))
	case lastMsg:
		m.last = plans.Line(string(msg))
	case tickMsg:
		if m.migration.Active {
			m.migration.Now = m.now()
		}
		return m, tick()
	case overMsg:
		m.over, m.explains, m.asks = true, false, none
		return m, tea.Quit
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

// key handles one key.
func (m model) key(key string) (tea.Model, tea.Cmd) {
	asked := m.asks
	m.asks = none
	switch {
	case key == "ctrl+c":
		m.do.Interrupt()
	case key == "ctrl+z":
		if !m.suspend() {
			m.notice = "not stopped: there is no shell here that could continue it"
		}
	case asked != none && key == "y":
		return m.confirmed(asked)
	case asked != none: // anything else is no
	case key == "p":
		m.asks = mayPause
	case key == "e":
		m.explains = !m.explains
	case key == "q" && m.do.Warning != nil:
		m.asks = mayLeave
	case key == "q":
		m.do.Leave()
	}
	return m, nil
}

// confirmed does what the user has confirmed.
func (m model) confirmed(what question) (tea.Model, tea.Cmd) {
	if what == mayLeave {
		m.do.Leave()
		return m, nil
	}
	pause := m.do.Pause
	return m, func() tea.Msg {
		if err := pause(); err != nil {
			return noticeMsg("not paused: " + err.Error())
		}
		return noticeMsg("pausing: the plan pauses when the ordinal under way has arrived, unless it is the last one")
	}
}

// View implements tea.Model.
func (m model) View() tea.View {
	content, line := m.frame()
	v := tea.NewView(content)
	v.DisableBracketedPasteMode = true
	// The cursor stays visible, also if this process is killed.
	v.Cursor = tea.NewCursor(0, line)
	return v
}

// frame returns what is on the screen, and the number of its last line.
func (m model) frame() (content string, last int) {
	foot := m.foot()
	rest := view.Size{Width: m.size.Width, Height: max(m.size.Height-len(foot), 1)}
	content = "reading both clusters ..."
	switch {
	case m.known && m.explains:
		content = view.Explain(m.migration, rest, m.style)
	case m.known:
		content = view.Render(m.migration, rest, m.style)
	}
	lines := append(strings.Split(content, "\n"), foot...)
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.size.Width, "")
	}
	return strings.Join(lines, "\n"), len(lines) - 1
}

// foot returns the lines below the frame: the last event, a notice, and the keys or a question.
func (m model) foot() []string {
	var lines []string
	if m.last != "" {
		lines = append(lines, "last     "+m.last)
	}
	if m.notice != "" {
		lines = append(lines, view.Note(m.notice, m.size.Width, 3)...)
	}
	switch {
	case m.over:
		return lines
	case m.asks == mayPause:
		return append(lines, "Pause "+m.migration.Plan+" when the ordinal under way has arrived? y/n")
	case m.asks == mayLeave:
		return append(lines, m.do.Warning()+" y/n")
	case m.explains:
		return append(lines, "e back to the table   p pause   q leave")
	}
	return append(lines, "p pause   e explain   q leave")
}
