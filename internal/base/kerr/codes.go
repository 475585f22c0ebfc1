package kerr

// All error codes of Kafka 4.4, in order; the texts are ours. Code 0 has no entry: it is a nil error.
var (
	UnknownServerError                     = &Error{-1, "UNKNOWN_SERVER_ERROR", "the broker met an error it did not expect", false}
	OffsetOutOfRange                       = &Error{1, "OFFSET_OUT_OF_RANGE", "the offset lies outside the log's range", false}
	CorruptMessage                         = &Error{2, "CORRUPT_MESSAGE", "a record batch is damaged: bad checksum, bad size, or a null key where one is needed", true}
	UnknownTopicOrPartition                = &Error{3, "UNKNOWN_TOPIC_OR_PARTITION", "no such topic or partition on this broker", true}
	InvalidFetchSize                       = &Error{4, "INVALID_FETCH_SIZE", "the requested fetch size is not valid", false}
	LeaderNotAvailable                     = &Error{5, "LEADER_NOT_AVAILABLE", "the partition has no leader at the moment", true}
	NotLeaderOrFollower                    = &Error{6, "NOT_LEADER_OR_FOLLOWER", "this broker is not the leader, or not a replica, of the partition", true}
	RequestTimedOut                        = &Error{7, "REQUEST_TIMED_OUT", "the request was not completed in time", true}
	BrokerNotAvailable                     = &Error{8, "BROKER_NOT_AVAILABLE", "the broker is not available", false}
	ReplicaNotAvailable                    = &Error{9, "REPLICA_NOT_AVAILABLE", "the replica is not available", true}
	MessageTooLarge                        = &Error{10, "MESSAGE_TOO_LARGE", "a record batch is larger than the topic allows", false}
	StaleControllerEpoch                   = &Error{11, "STALE_CONTROLLER_EPOCH", "another controller has taken over", false}
	OffsetMetadataTooLarge                 = &Error{12, "OFFSET_METADATA_TOO_LARGE", "the metadata text of a committed offset is too long", false}
	NetworkException                       = &Error{13, "NETWORK_EXCEPTION", "the connection was lost before an answer came", true}
	CoordinatorLoadInProgress              = &Error{14, "COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is still loading", true}
	CoordinatorNotAvailable                = &Error{15, "COORDINATOR_NOT_AVAILABLE", "the coordinator is not available", true}
	NotCoordinator                         = &Error{16, "NOT_COORDINATOR", "this broker is not the coordinator", true}
	InvalidTopicException                  = &Error{17, "INVALID_TOPIC_EXCEPTION", "the topic's name, or the operation on it, is not allowed", false}
	RecordListTooLarge                     = &Error{18, "RECORD_LIST_TOO_LARGE", "the record batch is larger than a log segment", false}
	NotEnoughReplicas                      = &Error{19, "NOT_ENOUGH_REPLICAS", "fewer replicas are in sync than the topic requires; nothing was written", true}
	NotEnoughReplicasAfterAppend           = &Error{20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "the records were written, but to fewer in-sync replicas than required", true}
	InvalidRequiredAcks                    = &Error{21, "INVALID_REQUIRED_ACKS", "acks must be 0, 1 or -1", false}
	IllegalGeneration                      = &Error{22, "ILLEGAL_GENERATION", "the group has another generation", false}
	InconsistentGroupProtocol              = &Error{23, "INCONSISTENT_GROUP_PROTOCOL", "the member's protocols do not fit those of the group", false}
	InvalidGroupId                         = &Error{24, "INVALID_GROUP_ID", "the group id is not valid", false}
	UnknownMemberId                        = &Error{25, "UNKNOWN_MEMBER_ID", "the group has no such member", false}
	InvalidSessionTimeout                  = &Error{26, "INVALID_SESSION_TIMEOUT", "the session timeout is outside the broker's limits", false}
	RebalanceInProgress                    = &Error{27, "REBALANCE_IN_PROGRESS", "the group is rebalancing; join again", false}
	InvalidCommitOffsetSize                = &Error{28, "INVALID_COMMIT_OFFSET_SIZE", "the offsets to commit are too large to store", false}
	TopicAuthorizationFailed               = &Error{29, "TOPIC_AUTHORIZATION_FAILED", "not authorized for the topic", false}
	GroupAuthorizationFailed               = &Error{30, "GROUP_AUTHORIZATION_FAILED", "not authorized for the group", false}
	ClusterAuthorizationFailed             = &Error{31, "CLUSTER_AUTHORIZATION_FAILED", "not authorized for the cluster", false}
	InvalidTimestamp                       = &Error{32, "INVALID_TIMESTAMP", "a record's timestamp is too far from the broker's clock", false}
	UnsupportedSaslMechanism               = &Error{33, "UNSUPPORTED_SASL_MECHANISM", "the SASL mechanism is not enabled here", false}
	IllegalSaslState                       = &Error{34, "ILLEGAL_SASL_STATE", "the request is not allowed at this point of authentication", false}
	UnsupportedVersion                     = &Error{35, "UNSUPPORTED_VERSION", "the version of the request, or of the feature, is not supported", false}
	TopicAlreadyExists                     = &Error{36, "TOPIC_ALREADY_EXISTS", "a topic of this name exists", false}
	InvalidPartitions                      = &Error{37, "INVALID_PARTITIONS", "the number of partitions is not valid", false}
	InvalidReplicationFactor               = &Error{38, "INVALID_REPLICATION_FACTOR", "the replication factor is below 1 or above the number of usable brokers", false}
	InvalidReplicaAssignment               = &Error{39, "INVALID_REPLICA_ASSIGNMENT", "the replica assignment is not valid", false}
	InvalidConfig                          = &Error{40, "INVALID_CONFIG", "the configuration is not valid", false}
	NotController                          = &Error{41, "NOT_CONTROLLER", "this node is not the active controller", true}
	InvalidRequest                         = &Error{42, "INVALID_REQUEST", "the request is malformed or contradicts itself", false}
	UnsupportedForMessageFormat            = &Error{43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "the topic's message format does not allow this request", false}
	PolicyViolation                        = &Error{44, "POLICY_VIOLATION", "a policy of the cluster refuses the request", false}
	OutOfOrderSequenceNumber               = &Error{45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "the producer's sequence number is not the next one", false}
	DuplicateSequenceNumber                = &Error{46, "DUPLICATE_SEQUENCE_NUMBER", "the producer's sequence number was written before", false}
	InvalidProducerEpoch                   = &Error{47, "INVALID_PRODUCER_EPOCH", "the producer's epoch is older than the newest one seen", false}
	InvalidTxnState                        = &Error{48, "INVALID_TXN_STATE", "the transaction's state does not allow this operation", false}
	InvalidProducerIdMapping               = &Error{49, "INVALID_PRODUCER_ID_MAPPING", "the producer id does not belong to the transactional id", false}
	InvalidTransactionTimeout              = &Error{50, "INVALID_TRANSACTION_TIMEOUT", "the transaction timeout is outside the broker's limits", false}
	ConcurrentTransactions                 = &Error{51, "CONCURRENT_TRANSACTIONS", "another operation on the transaction is still going on", true}
	TransactionCoordinatorFenced           = &Error{52, "TRANSACTION_COORDINATOR_FENCED", "a newer transaction coordinator has taken over", false}
	TransactionalIdAuthorizationFailed     = &Error{53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "not authorized for the transactional id", false}
	SecurityDisabled                       = &Error{54, "SECURITY_DISABLED", "security features are switched off", false}
	OperationNotAttempted                  = &Error{55, "OPERATION_NOT_ATTEMPTED", "not tried, because another part of the request failed", false}
	KafkaStorageError                      = &Error{56, "KAFKA_STORAGE_ERROR", "the log directory of the partition is offline or failed", true}
	LogDirNotFound                         = &Error{57, "LOG_DIR_NOT_FOUND", "the broker has no such log directory", false}
	SaslAuthenticationFailed               = &Error{58, "SASL_AUTHENTICATION_FAILED", "authentication failed", false}
	UnknownProducerId                      = &Error{59, "UNKNOWN_PRODUCER_ID", "nothing is known of this producer id any more", false}
	ReassignmentInProgress                 = &Error{60, "REASSIGNMENT_IN_PROGRESS", "the partition is being reassigned", false}
	DelegationTokenAuthDisabled            = &Error{61, "DELEGATION_TOKEN_AUTH_DISABLED", "delegation tokens are switched off", false}
	DelegationTokenNotFound                = &Error{62, "DELEGATION_TOKEN_NOT_FOUND", "no such delegation token", false}
	DelegationTokenOwnerMismatch           = &Error{63, "DELEGATION_TOKEN_OWNER_MISMATCH", "the principal neither owns nor may renew the token", false}
	DelegationTokenRequestNotAllowed       = &Error{64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "token requests are not allowed on this kind of connection", false}
	DelegationTokenAuthorizationFailed     = &Error{65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", "not authorized for the delegation token", false}
	DelegationTokenExpired                 = &Error{66, "DELEGATION_TOKEN_EXPIRED", "the delegation token has expired", false}
	InvalidPrincipalType                   = &Error{67, "INVALID_PRINCIPAL_TYPE", "the principal's type is not supported", false}
	NonEmptyGroup                          = &Error{68, "NON_EMPTY_GROUP", "the group still has members", false}
	GroupIdNotFound                        = &Error{69, "GROUP_ID_NOT_FOUND", "no such group", false}
	FetchSessionIdNotFound                 = &Error{70, "FETCH_SESSION_ID_NOT_FOUND", "no such fetch session", true}
	InvalidFetchSessionEpoch               = &Error{71, "INVALID_FETCH_SESSION_EPOCH", "the epoch of the fetch session is not the next one", true}
	ListenerNotFound                       = &Error{72, "LISTENER_NOT_FOUND", "the leader has no listener of this name", true}
	TopicDeletionDisabled                  = &Error{73, "TOPIC_DELETION_DISABLED", "deleting topics is switched off", false}
	FencedLeaderEpoch                      = &Error{74, "FENCED_LEADER_EPOCH", "the request's leader epoch is older than the broker's", true}
	UnknownLeaderEpoch                     = &Error{75, "UNKNOWN_LEADER_EPOCH", "the request's leader epoch is newer than the broker's", true}
	UnsupportedCompressionType             = &Error{76, "UNSUPPORTED_COMPRESSION_TYPE", "the client cannot read the partition's compression", false}
	StaleBrokerEpoch                       = &Error{77, "STALE_BROKER_EPOCH", "the broker's epoch is not the current one", false}
	OffsetNotAvailable                     = &Error{78, "OFFSET_NOT_AVAILABLE", "the new leader's high watermark has not caught up yet", true}
	MemberIdRequired                       = &Error{79, "MEMBER_ID_REQUIRED", "join again with the member id given in this answer", false}
	PreferredLeaderNotAvailable            = &Error{80, "PREFERRED_LEADER_NOT_AVAILABLE", "the preferred leader is not available", true}
	GroupMaxSizeReached                    = &Error{81, "GROUP_MAX_SIZE_REACHED", "the group is full", false}
	FencedInstanceId                       = &Error{82, "FENCED_INSTANCE_ID", "another member has registered under this group.instance.id", false}
	EligibleLeadersNotAvailable            = &Error{83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "no replica that may lead is available", true}
	ElectionNotNeeded                      = &Error{84, "ELECTION_NOT_NEEDED", "the partition already has the wanted leader", true}
	NoReassignmentInProgress               = &Error{85, "NO_REASSIGNMENT_IN_PROGRESS", "the partition is not being reassigned", false}
	GroupSubscribedToTopic                 = &Error{86, "GROUP_SUBSCRIBED_TO_TOPIC", "the group is subscribed to the topic", false}
	InvalidRecord                          = &Error{87, "INVALID_RECORD", "a record breaks a rule of the broker", false}
	UnstableOffsetCommit                   = &Error{88, "UNSTABLE_OFFSET_COMMIT", "a transaction on these offsets is not finished", true}
	ThrottlingQuotaExceeded                = &Error{89, "THROTTLING_QUOTA_EXCEEDED", "the quota is used up for now", true}
	ProducerFenced                         = &Error{90, "PRODUCER_FENCED", "a newer producer uses this transactional id", false}
	ResourceNotFound                       = &Error{91, "RESOURCE_NOT_FOUND", "the request names a resource that does not exist", false}
	DuplicateResource                      = &Error{92, "DUPLICATE_RESOURCE", "the request names a resource twice", false}
	UnacceptableCredential                 = &Error{93, "UNACCEPTABLE_CREDENTIAL", "the credential does not meet the rules", false}
	InconsistentVoterSet                   = &Error{94, "INCONSISTENT_VOTER_SET", "sender or receiver is not an expected voter", false}
	InvalidUpdateVersion                   = &Error{95, "INVALID_UPDATE_VERSION", "the feature level asked for is not valid", false}
	FeatureUpdateFailed                    = &Error{96, "FEATURE_UPDATE_FAILED", "the features could not be updated", false}
	PrincipalDeserializationFailure        = &Error{97, "PRINCIPAL_DESERIALIZATION_FAILURE", "the principal of a forwarded request cannot be read", false}
	SnapshotNotFound                       = &Error{98, "SNAPSHOT_NOT_FOUND", "no such snapshot", false}
	PositionOutOfRange                     = &Error{99, "POSITION_OUT_OF_RANGE", "the position lies outside the snapshot", false}
	UnknownTopicId                         = &Error{100, "UNKNOWN_TOPIC_ID", "no topic with this id on this broker", true}
	DuplicateBrokerRegistration            = &Error{101, "DUPLICATE_BROKER_REGISTRATION", "another broker is registered under this id", false}
	BrokerIdNotRegistered                  = &Error{102, "BROKER_ID_NOT_REGISTERED", "no broker is registered under this id", false}
	InconsistentTopicId                    = &Error{103, "INCONSISTENT_TOPIC_ID", "the log belongs to a topic with another id", true}
	InconsistentClusterId                  = &Error{104, "INCONSISTENT_CLUSTER_ID", "this node belongs to another cluster", false}
	TransactionalIdNotFound                = &Error{105, "TRANSACTIONAL_ID_NOT_FOUND", "no such transactional id", false}
	FetchSessionTopicIdError               = &Error{106, "FETCH_SESSION_TOPIC_ID_ERROR", "the fetch session mixes topic names and topic ids", true}
	IneligibleReplica                      = &Error{107, "INELIGIBLE_REPLICA", "a replica of the proposed ISR may not join it", false}
	NewLeaderElected                       = &Error{108, "NEW_LEADER_ELECTED", "the partition was changed, and has a new leader", false}
	OffsetMovedToTieredStorage             = &Error{109, "OFFSET_MOVED_TO_TIERED_STORAGE", "the offset is in tiered storage only", false}
	FencedMemberEpoch                      = &Error{110, "FENCED_MEMBER_EPOCH", "the member's epoch is fenced: give up all partitions and join again", false}
	UnreleasedInstanceId                   = &Error{111, "UNRELEASED_INSTANCE_ID", "another member still holds this instance id", false}
	UnsupportedAssignor                    = &Error{112, "UNSUPPORTED_ASSIGNOR", "the group does not support this assignor", false}
	StaleMemberEpoch                       = &Error{113, "STALE_MEMBER_EPOCH", "the member's epoch is old; try again with the new one", false}
	MismatchedEndpointType                 = &Error{114, "MISMATCHED_ENDPOINT_TYPE", "the request came to the wrong kind of endpoint", false}
	UnsupportedEndpointType                = &Error{115, "UNSUPPORTED_ENDPOINT_TYPE", "this kind of endpoint is not supported", false}
	UnknownControllerId                    = &Error{116, "UNKNOWN_CONTROLLER_ID", "no controller has this id", false}
	UnknownSubscriptionId                  = &Error{117, "UNKNOWN_SUBSCRIPTION_ID", "the telemetry subscription is unknown or out of date", false}
	TelemetryTooLarge                      = &Error{118, "TELEMETRY_TOO_LARGE", "the pushed telemetry is larger than the broker accepts", false}
	InvalidRegistration                    = &Error{119, "INVALID_REGISTRATION", "the controller refuses the registration", false}
	TransactionAbortable                   = &Error{120, "TRANSACTION_ABORTABLE", "the transaction met an error and can only be aborted", false}
	InvalidRecordState                     = &Error{121, "INVALID_RECORD_STATE", "the record's state does not allow the acknowledgement", false}
	ShareSessionNotFound                   = &Error{122, "SHARE_SESSION_NOT_FOUND", "no such share session", true}
	InvalidShareSessionEpoch               = &Error{123, "INVALID_SHARE_SESSION_EPOCH", "the epoch of the share session is not the next one", true}
	FencedStateEpoch                       = &Error{124, "FENCED_STATE_EPOCH", "the state epoch does not match the coordinator's", false}
	InvalidVoterKey                        = &Error{125, "INVALID_VOTER_KEY", "the voter key is not that of this node", false}
	DuplicateVoter                         = &Error{126, "DUPLICATE_VOTER", "the voter is in the voter set already", false}
	VoterNotFound                          = &Error{127, "VOTER_NOT_FOUND", "the voter is not in the voter set", false}
	InvalidRegularExpression               = &Error{128, "INVALID_REGULAR_EXPRESSION", "the regular expression is not valid", false}
	RebootstrapRequired                    = &Error{129, "REBOOTSTRAP_REQUIRED", "the client knows another cluster; it must bootstrap again", false}
	StreamsInvalidTopology                 = &Error{130, "STREAMS_INVALID_TOPOLOGY", "the streams topology is not valid", false}
	StreamsInvalidTopologyEpoch            = &Error{131, "STREAMS_INVALID_TOPOLOGY_EPOCH", "the epoch of the streams topology is not valid", false}
	StreamsTopologyFenced                  = &Error{132, "STREAMS_TOPOLOGY_FENCED", "the epoch of the streams topology is old", false}
	ShareSessionLimitReached               = &Error{133, "SHARE_SESSION_LIMIT_REACHED", "no more share sessions can be opened", true}
	GroupDeletionFailed                    = &Error{134, "GROUP_DELETION_FAILED", "the group could not be deleted; its own message says why", false}
	StreamsTopologyDescriptionUpdateFailed = &Error{135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", "the topology description could not be stored", false}
	ControllerIdNotRegistered              = &Error{136, "CONTROLLER_ID_NOT_REGISTERED", "no controller is registered under this id", false}
)

// all lists the codes from 1 upward, each at index code-1; UnknownServerError stands apart.
var all = [...]*Error{
	OffsetOutOfRange,
	CorruptMessage,
	UnknownTopicOrPartition,
	InvalidFetchSize,
	LeaderNotAvailable,
	NotLeaderOrFollower,
	RequestTimedOut,
	BrokerNotAvailable,
	ReplicaNotAvailable,
	MessageTooLarge,
	StaleControllerEpoch,
	OffsetMetadataTooLarge,
	NetworkException,
	CoordinatorLoadInProgress,
	CoordinatorNotAvailable,
	NotCoordinator,
	InvalidTopicException,
	RecordListTooLarge,
	NotEnoughReplicas,
	NotEnoughReplicasAfterAppend,
	InvalidRequiredAcks,
	IllegalGeneration,
	InconsistentGroupProtocol,
	InvalidGroupId,
	UnknownMemberId,
	InvalidSessionTimeout,
	RebalanceInProgress,
	InvalidCommitOffsetSize,
	TopicAuthorizationFailed,
	GroupAuthorizationFailed,
	ClusterAuthorizationFailed,
	InvalidTimestamp,
	UnsupportedSaslMechanism,
	IllegalSaslState,
	UnsupportedVersion,
	TopicAlreadyExists,
	InvalidPartitions,
	InvalidReplicationFactor,
	InvalidReplicaAssignment,
	InvalidConfig,
	NotController,
	InvalidRequest,
	UnsupportedForMessageFormat,
	PolicyViolation,
	OutOfOrderSequenceNumber,
	DuplicateSequenceNumber,
	InvalidProducerEpoch,
	InvalidTxnState,
	InvalidProducerIdMapping,
	InvalidTransactionTimeout,
	ConcurrentTransactions,
	TransactionCoordinatorFenced,
	TransactionalIdAuthorizationFailed,
	SecurityDisabled,
	OperationNotAttempted,
	KafkaStorageError,
	LogDirNotFound,
	SaslAuthenticationFailed,
	UnknownProducerId,
	ReassignmentInProgress,
	DelegationTokenAuthDisabled,
	DelegationTokenNotFound,
	DelegationTokenOwnerMismatch,
	DelegationTokenRequestNotAllowed,
	DelegationTokenAuthorizationFailed,
	DelegationTokenExpired,
	InvalidPrincipalType,
	NonEmptyGroup,
	GroupIdNotFound,
	FetchSessionIdNotFound,
	InvalidFetchSessionEpoch,
	ListenerNotFound,
	TopicDeletionDisabled,
	FencedLeaderEpoch,
	UnknownLeaderEpoch,
	UnsupportedCompressionType,
	StaleBrokerEpoch,
	OffsetNotAvailable,
	MemberIdRequired,
	PreferredLeaderNotAvailable,
	GroupMaxSizeReached,
	FencedInstanceId,
	EligibleLeadersNotAvailable,
	ElectionNotNeeded,
	NoReassignmentInProgress,
	GroupSubscribedToTopic,
	InvalidRecord,
	UnstableOffsetCommit,
	ThrottlingQuotaExceeded,
	ProducerFenced,
	ResourceNotFound,
	DuplicateResource,
	UnacceptableCredential,
	InconsistentVoterSet,
	InvalidUpdateVersion,
	FeatureUpdateFailed,
	PrincipalDeserializationFailure,
	SnapshotNotFound,
	PositionOutOfRange,
	UnknownTopicId,
	DuplicateBrokerRegistration,
	BrokerIdNotRegistered,
	InconsistentTopicId,
	InconsistentClusterId,
	TransactionalIdNotFound,
	FetchSessionTopicIdError,
	IneligibleReplica,
	NewLeaderElected,
	OffsetMovedToTieredStorage,
	FencedMemberEpoch,
	UnreleasedInstanceId,
	UnsupportedAssignor,
	StaleMemberEpoch,
	MismatchedEndpointType,
	UnsupportedEndpointType,
	UnknownControllerId,
	UnknownSubscriptionId,
	TelemetryTooLarge,
	InvalidRegistration,
	TransactionAbortable,
	InvalidRecordState,
	ShareSessionNotFound,
	InvalidShareSessionEpoch,
	FencedStateEpoch,
	InvalidVoterKey,
	DuplicateVoter,
	VoterNotFound,
	InvalidRegularExpression,
	RebootstrapRequired,
	StreamsInvalidTopology,
	StreamsInvalidTopologyEpoch,
	StreamsTopologyFenced,
	ShareSessionLimitReached,
	GroupDeletionFailed,
	StreamsTopologyDescriptionUpdateFailed,
	ControllerIdNotRegistered,
}
