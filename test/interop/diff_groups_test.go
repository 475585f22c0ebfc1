package interop

import (
	"fmt"

	"samsa/internal/wire/protocol"
)

var groupQuestions = func() (all []question) {
	add := func(name string, key int16, versions, body string) {
		all = append(all, question{name: name, key: key, versions: versions, body: body})
	}
	fc := int16(protocol.KeyFindCoordinator)
	add("an empty key", fc, "0-3", `{"Key":""}`)
	add("an empty key", fc, "4-6", `{"CoordinatorKeys":[""]}`)
	add("no keys", fc, "4-6", `{"CoordinatorKeys":[]}`)
	add("of a kind that is none", fc, "1-3", `{"Key":"g","KeyType":7}`)
	add("of a kind that is none", fc, "4-6", `{"CoordinatorKeys":["g"],"KeyType":7}`)
	for i := range all {
		if q := &all[i]; q.name == "of a kind that is none" {
			q.differs = map[string]string{`.*ErrorMessage`: clearerWords}
		}
	}

	join := func(rest string) string {
		return `{"ProtocolType":"consumer","SessionTimeoutMs":10000,"RebalanceTimeoutMs":10000,"Protocols":[{"Name":"range","Metadata":"m"}],` + rest + `}`
	}
	jg := int16(protocol.KeyJoinGroup)
	add("a short session", jg, "0-9", `{"GroupId":"g","SessionTimeoutMs":1,"MemberId":"","ProtocolType":"consumer","Protocols":[{"Name":"range","Metadata":"m"}]}`)
	add("a long session", jg, "0,9", `{"GroupId":"g","SessionTimeoutMs":99999999,"MemberId":"","ProtocolType":"consumer","Protocols":[{"Name":"range","Metadata":"m"}]}`)
	add("no group", jg, "0-9", join(`"GroupId":"","MemberId":""`))
	add("a member nobody knows", jg, "0-9", join(`"GroupId":"g","MemberId":"stranger"`))
	add("a member id first", jg, "4-9", join(`"GroupId":"g","MemberId":""`))
	add("no protocols", jg, "4,9", `{"GroupId":"g2","SessionTimeoutMs":10000,"MemberId":"","ProtocolType":"consumer","Protocols":[]}`)
	add("no protocol type", jg, "4,9", `{"GroupId":"g2","SessionTimeoutMs":10000,"MemberId":"","ProtocolType":"","Protocols":[{"Name":"range","Metadata":"m"}]}`)
	add("an illegal instance", jg, "5,9", join(`"GroupId":"g2","MemberId":"","GroupInstanceId":""`))
	add("an instance with a blank", jg, "9", join(`"GroupId":"g2","MemberId":"","GroupInstanceId":"a b"`))

	sg, hb, lg := int16(protocol.KeySyncGroup), int16(protocol.KeyHeartbeat), int16(protocol.KeyLeaveGroup)
	add("of nobody", sg, "0-5", `{"GroupId":"nobody","GenerationId":1,"MemberId":"m"}`)
	add("no group", sg, "0-5", `{"GroupId":"","GenerationId":1,"MemberId":"m"}`)
	add("a stranger", sg, "0-5", `{"GroupId":"g","GenerationId":1,"MemberId":"m"}`)
	add("of nobody", hb, "0-4", `{"GroupId":"nobody","GenerationId":1,"MemberId":"m"}`)
	add("no group", hb, "0-4", `{"GroupId":"","GenerationId":1,"MemberId":"m"}`)
	add("an unknown instance", hb, "3-4", `{"GroupId":"g","GenerationId":1,"MemberId":"m","GroupInstanceId":"i"}`)
	add("of nobody", lg, "0-2", `{"GroupId":"nobody","MemberId":"m"}`)
	add("of nobody", lg, "3-5", `{"GroupId":"nobody","Members":[{"MemberId":"m"},{"MemberId":"","GroupInstanceId":"i"}]}`)
	add("no group", lg, "0-2", `{"GroupId":"","MemberId":"m"}`)
	add("no members", lg, "3-5", `{"GroupId":"g","Members":[]}`)

	oc := int16(protocol.KeyOffsetCommit)
	commit := func(group, rest, partition string) string {
		return fmt.Sprintf(`{"GroupId":%q,%s"Topics":[{"Name":"orders","Partitions":[%s]}]}`, group, rest, partition)
	}
	const part = `{"PartitionIndex":0,"CommittedOffset":5,"CommittedMetadata":"m"}`
	add("by hand", oc, "2-9", commit("byhand", "", part))
	add("by hand and by id", oc, "10", `{"GroupId":"byhand","Topics":[{"TopicId":"orders","Partitions":[`+part+`]},{"TopicId":"`+unknownID+`","Partitions":[`+part+`]}]}`)
	add("a generation of no group", oc, "2-9", commit("other", `"GenerationIdOrMemberEpoch":3,"MemberId":"m",`, part))
	add("no group", oc, "2,9", commit("", "", part))
	add("an unknown topic and partition", oc, "2-9", `{"GroupId":"byhand","Topics":[{"Name":"nobody","Partitions":[`+part+`]},{"Name":"orders","Partitions":[{"PartitionIndex":99,"CommittedOffset":5},{"PartitionIndex":-1,"CommittedOffset":5}]}]}`)
	add("no id", oc, "10", `{"GroupId":"byhand","Topics":[{"TopicId":"AAAAAAAAAAAAAAAAAAAAAA","Partitions":[`+part+`]}]}`)
	add("a negative offset", oc, "9", commit("byhand", "", `{"PartitionIndex":1,"CommittedOffset":-5,"CommittedMetadata":null}`))
	add("long metadata", oc, "9", commit("byhand", "", `{"PartitionIndex":2,"CommittedOffset":5,"CommittedMetadata":"repeat:5000:x"}`))
	add("no topics", oc, "2-10", `{"GroupId":"byhand","Topics":[]}`)

	of := int16(protocol.KeyOffsetFetch)
	add("some", of, "1-7", `{"GroupId":"byhand","Topics":[{"Name":"orders","PartitionIndexes":[0,1,99]},{"Name":"nobody","PartitionIndexes":[0]}]}`)
	add("all", of, "2-7", `{"GroupId":"byhand","Topics":null}`)
	add("some of several groups", of, "8-9", `{"Groups":[{"GroupId":"byhand","Topics":[{"Name":"orders","PartitionIndexes":[0,1]},{"Name":"nobody","PartitionIndexes":[0]}]},{"GroupId":"nobody","Topics":null},{"GroupId":"","Topics":null}]}`)
	add("by id", of, "10", `{"Groups":[{"GroupId":"byhand","Topics":[{"TopicId":"orders","PartitionIndexes":[0,1,99]},{"TopicId":"`+unknownID+`","PartitionIndexes":[0]}]},{"GroupId":"byhand2","Topics":null}]}`)
	add("all", of, "8-10", `{"Groups":[{"GroupId":"byhand","Topics":null}]}`)
	add("as a member of no group", of, "9-10", `{"Groups":[{"GroupId":"byhand","MemberId":"m","MemberEpoch":3,"Topics":null}]}`)
	add("a group twice", of, "9", `{"Groups":[{"GroupId":"byhand","Topics":null},{"GroupId":"byhand","Topics":null}]}`)
	add("no groups", of, "8-10", `{"Groups":[]}`)

	dg := int16(protocol.KeyDescribeGroups)
	add("empty, nobody and no name", dg, "0-6", `{"Groups":["byhand","nobody",""]}`)
	add("authorized operations", dg, "3-6", `{"IncludeAuthorizedOperations":true,"Groups":["byhand","nobody"]}`)
	add("none", dg, "0-6", `{"Groups":[]}`)
	lgs := int16(protocol.KeyListGroups)
	add("all", lgs, "0-5", `{}`)
	add("by state", lgs, "4-5", `{"StatesFilter":["empty","Stable"]}`)
	add("by a state that is none", lgs, "4-5", `{"StatesFilter":["Sleeping"]}`)
	add("by type", lgs, "5", `{"TypesFilter":["classic"]}`)
	add("by a type that is none", lgs, "5", `{"TypesFilter":["modern"]}`)

	od := int16(protocol.KeyOffsetDelete)
	add("of nobody", od, "0", `{"GroupId":"nobody","Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0}]}]}`)
	add("no group", od, "0", `{"GroupId":"","Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0}]}]}`)
	add("unknown topics and partitions", od, "0", `{"GroupId":"byhand","Topics":[{"Name":"nobody","Partitions":[{"PartitionIndex":0}]},{"Name":"orders","Partitions":[{"PartitionIndex":99},{"PartitionIndex":1}]}]}`)
	add("an offset", od, "0", `{"GroupId":"byhand","Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0}]}]}`)
	del := int16(protocol.KeyDeleteGroups)
	add("nobody and no name", del, "0-3", `{"GroupsNames":["nobody",""]}`)
	add("none", del, "0-3", `{"GroupsNames":[]}`)
	add("one", del, "2", `{"GroupsNames":["byhand"]}`)
	return all
}()
