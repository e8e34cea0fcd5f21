package reasons

// ID names a reason. Its form is that of a reason of a Kubernetes condition or Event.
type ID string

// The reasons in table/process.yaml, from which they are made: go test ./internal/reasons -update
const (
	ChecksFailed        ID = "ChecksFailed"
	NoConsent           ID = "NoConsent"
	Paused              ID = "Paused"
	WavesAtLimit        ID = "WavesAtLimit"
	WaitsForRoom        ID = "WaitsForRoom"
	WriteNotTaken       ID = "WriteNotTaken"
	WaitsForApproval    ID = "WaitsForApproval"
	ClusterNotReached   ID = "ClusterNotReached"
	ClusterUnknown      ID = "ClusterUnknown"
	CredentialsExpired  ID = "CredentialsExpired"
	RequestRefusedByAPI ID = "RequestRefusedByAPI"
	WriteWithoutEffect  ID = "WriteWithoutEffect"
	ProgramFailed       ID = "ProgramFailed"
	TakenOver           ID = "TakenOver"
	CarriedOutElsewhere ID = "CarriedOutElsewhere"
	NoOrchestrator      ID = "NoOrchestrator"
	OtherVersion        ID = "OtherVersion"
)

// The reasons in table/sets.yaml, from which they are made: go test ./internal/reasons -update
const (
	OrdinalDown       ID = "OrdinalDown"
	SetUnsettled      ID = "SetUnsettled"
	SetNotObserved    ID = "SetNotObserved"
	SetNotPinned      ID = "SetNotPinned"
	PartitionChanged  ID = "PartitionChanged"
	TemplateDiffers   ID = "TemplateDiffers"
	CopyDiffers       ID = "CopyDiffers"
	SetTerminating    ID = "SetTerminating"
	SetDeleted        ID = "SetDeleted"
	SetMarkLost       ID = "SetMarkLost"
	SetDiffers        ID = "SetDiffers"
	OrdinalsChanged   ID = "OrdinalsChanged"
	OrdinalsAdded     ID = "OrdinalsAdded"
	RetentionChanged  ID = "RetentionChanged"
	PlanOutdated      ID = "PlanOutdated"
	PodNotReady       ID = "PodNotReady"
	PodNotAvailable   ID = "PodNotAvailable"
	PodTerminating    ID = "PodTerminating"
	PodHeld           ID = "PodHeld"
	PodStranded       ID = "PodStranded"
	PodForeign        ID = "PodForeign"
	NodeNotReady      ID = "NodeNotReady"
	NodeGone          ID = "NodeGone"
	DependencyDiffers ID = "DependencyDiffers"
	BelongsElsewhere  ID = "BelongsElsewhere"
	AdoptionInTheWay  ID = "AdoptionInTheWay"
	AdoptionRevision  ID = "AdoptionRevision"
	ClientsDeserted   ID = "ClientsDeserted"
	PlaceNotReady     ID = "PlaceNotReady"
	PlaceTaken        ID = "PlaceTaken"
)

// The reasons in table/storage.yaml, from which they are made: go test ./internal/reasons -update
const (
	ClaimNotBound          ID = "ClaimNotBound"
	ClaimTerminating       ID = "ClaimTerminating"
	ClaimMounted           ID = "ClaimMounted"
	ClaimWanted            ID = "ClaimWanted"
	ClaimKept              ID = "ClaimKept"
	ClaimReferenced        ID = "ClaimReferenced"
	ClaimOwned             ID = "ClaimOwned"
	ClaimForeign           ID = "ClaimForeign"
	ClaimDeleted           ID = "ClaimDeleted"
	ClaimRecreated         ID = "ClaimRecreated"
	SharedClaimDeleted     ID = "SharedClaimDeleted"
	SharedClaimResized     ID = "SharedClaimResized"
	BindingBroken          ID = "BindingBroken"
	BinderBehind           ID = "BinderBehind"
	PodEndNotSeen          ID = "PodEndNotSeen"
	VolumeAttached         ID = "VolumeAttached"
	VolumeInUse            ID = "VolumeInUse"
	VolumeTerminating      ID = "VolumeTerminating"
	VolumeDeleted          ID = "VolumeDeleted"
	VolumeUnsafe           ID = "VolumeUnsafe"
	VolumeNotRetained      ID = "VolumeNotRetained"
	VolumeMarkLost         ID = "VolumeMarkLost"
	VolumeClaimedElsewhere ID = "VolumeClaimedElsewhere"
	VolumeForeign          ID = "VolumeForeign"
	VolumeNotTranslated    ID = "VolumeNotTranslated"
	OtherDisk              ID = "OtherDisk"
	JournalIncomplete      ID = "JournalIncomplete"
)

// The reasons in table/budgets.yaml, from which they are made: go test ./internal/reasons -update
const (
	BudgetMissing     ID = "BudgetMissing"
	BudgetNotObserved ID = "BudgetNotObserved"
	BudgetTooWide     ID = "BudgetTooWide"
	BudgetChanged     ID = "BudgetChanged"
	BudgetSelection   ID = "BudgetSelection"
	BudgetMarkLost    ID = "BudgetMarkLost"
	EvictionPending   ID = "EvictionPending"
	PodLeaving        ID = "PodLeaving"
	DrainFirst        ID = "DrainFirst"
)

// The reasons in table/gates.yaml, from which they are made: go test ./internal/reasons -update
const (
	GateNotPassed    ID = "GateNotPassed"
	GateFailed       ID = "GateFailed"
	GateJobForeign   ID = "GateJobForeign"
	ExportNotReady   ID = "ExportNotReady"
	ExportConflict   ID = "ExportConflict"
	NameNotPublished ID = "NameNotPublished"
)

// The reasons in table/records.yaml, from which they are made: go test ./internal/reasons -update
const (
	NoPlan              ID = "NoPlan"
	NoJournal           ID = "NoJournal"
	RecordUnreadable    ID = "RecordUnreadable"
	JournalRewound      ID = "JournalRewound"
	JournalRebuilt      ID = "JournalRebuilt"
	PlanEnded           ID = "PlanEnded"
	DirectionImpossible ID = "DirectionImpossible"
	RequestWithoutUse   ID = "RequestWithoutUse"
	DeclarationInvalid  ID = "DeclarationInvalid"
	DeclarationDiffers  ID = "DeclarationDiffers"
	DeclarationDeleted  ID = "DeclarationDeleted"
	ApprovalOutdated    ID = "ApprovalOutdated"
)
