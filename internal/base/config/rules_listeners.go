package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	controllerNamesKey = "controller.listener.names"
	listenersKey       = "listeners"
	advertisedKey      = "advertised.listeners"
	protocolMapKey     = "listener.security.protocol.map"
	interBrokerKey     = "inter.broker.listener.name"
	votersKey          = "controller.quorum.voters"
	bootstrapKey       = "controller.quorum.bootstrap.servers"
	rolesKey           = "process.roles"
)

// listeners derives the listeners of each kind and checks them against the roles and the quorum
// (K-01, K-02, K-03, S-01).
func (c *checker) listeners(n *Node) {
	if c.sane(votersKey) {
		n.Quorum.Voters, _ = parseVoters(c.list(votersKey))
		for _, v := range n.Quorum.Voters {
			c.must(v.Host != "0.0.0.0", votersKey, "Host string (%s) is not routeable", v.Host)
		}
	}
	if c.sane(bootstrapKey) {
		n.Quorum.BootstrapServers, _ = parseBootstrap(c.list(bootstrapKey))
	}
	if !c.sane(controllerNamesKey, listenersKey, advertisedKey, rolesKey, "security.inter.broker.protocol") {
		return
	}
	names := c.list(controllerNamesKey)
	protocols, err := protocolMap(c.text(protocolMapKey), c.isSet(protocolMapKey), names, c.list(listenersKey))
	if !c.fail(protocolMapKey, err) {
		return
	}
	n.ControllerListenerNames = names
	n.Listeners, err = parseListeners(c.list(listenersKey), protocols, true)
	if !c.fail(listenersKey, err) {
		return
	}
	advertised := n.Listeners
	if !c.isNull(advertisedKey) {
		advertised, err = parseListeners(c.list(advertisedKey), protocols, false)
		if !c.fail(advertisedKey, err) {
			return
		}
	}
	isController := func(l Listener) bool { return slices.Contains(names, l.Name) }
	n.AdvertisedListeners = slices.DeleteFunc(slices.Clone(advertised), isController)
	n.AdvertisedControllerListeners = advertisedControllers(n, advertised, !c.isNull(advertisedKey))
	if len(names) > 0 {
		n.ControllerProtocol = protocols[strings.ToUpper(names[0])]
	}
	c.interBroker(n, protocols)
	c.roles(n, protocols)
	for _, l := range slices.Concat(n.AdvertisedListeners, n.AdvertisedControllerListeners) {
		c.require(l.Host != "0.0.0.0", advertisedKey,
			"advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.")
	}
	c.earlyStart(n)
}

// advertisedControllers are this node's controller listeners as others are told them: what
// advertised.listeners says, else for the first one what the voters say of this node when it
// listens on every address, else the listener itself.
func advertisedControllers(n *Node, advertised []Listener, explicit bool) []Listener {
	var out []Listener
	for i, name := range n.ControllerListenerNames {
		byName := func(l Listener) bool { return l.Name == name }
		if j := slices.IndexFunc(advertised, byName); explicit && j >= 0 {
			out = append(out, advertised[j])
			continue
		}
		j := slices.IndexFunc(n.Listeners, byName)
		if j < 0 {
			continue
		}
		l := n.Listeners[j]
		if l.Host == "0.0.0.0" {
			l.Host = ""
		}
		if i == 0 && l.Host == "" {
			if k := slices.IndexFunc(n.Quorum.Voters, func(v Voter) bool { return v.ID == n.NodeID }); k >= 0 {
				l.Host, l.Port = n.Quorum.Voters[k].Host, n.Quorum.Voters[k].Port
			}
		}
		out = append(out, l)
	}
	return out
}

func (c *checker) interBroker(n *Node, protocols map[string]SecurityProtocol) {
	const protocolKey = "security.inter.broker.protocol"
	if c.isNull(interBrokerKey) {
		p, err := parseProtocol(c.text(protocolKey), protocolKey)
		c.fail(protocolKey, err)
		n.InterBrokerListenerName, n.InterBrokerProtocol = p.String(), p
		return
	}
	c.must(!c.isSet(protocolKey), interBrokerKey, "Only one of %s and %s should be set.", interBrokerKey, protocolKey)
	n.InterBrokerListenerName = strings.ToUpper(c.text(interBrokerKey))
	p, ok := protocols[n.InterBrokerListenerName]
	c.must(ok, interBrokerKey, "Listener with name %s defined in %s not found in %s.", n.InterBrokerListenerName, interBrokerKey, protocolMapKey)
	n.InterBrokerProtocol = p
}

// roles checks quorum and listeners against process.roles.
func (c *checker) roles(n *Node, protocols map[string]SecurityProtocol) {
	if c.sane(votersKey, bootstrapKey) {
		c.must(len(n.Quorum.Voters) > 0 || len(n.Quorum.BootstrapServers) > 0, bootstrapKey,
			"If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap controllers or controller.quorum.voters must contain a parseable set of controllers.")
	}
	isVoter := slices.ContainsFunc(n.Quorum.Voters, func(v Voter) bool { return v.ID == n.NodeID })
	known := c.sane(votersKey, "node.id")
	if n.Controller {
		c.controllerRole(n, known && len(n.Quorum.Voters) > 0 && !isVoter)
	} else if n.Broker {
		c.require(!known || !isVoter, votersKey,
			"If process.roles contains just the 'broker' role, the node id %d must not be included in the set of voters controller.quorum.voters=%s", n.NodeID, voterIDs(n.Quorum.Voters))
		c.require(!slices.ContainsFunc(n.Listeners, func(l Listener) bool { return slices.Contains(n.ControllerListenerNames, l.Name) }), listenersKey,
			"controller.listener.names must not contain a value appearing in the 'listeners' configuration when running KRaft with just the broker role")
		for _, name := range n.ControllerListenerNames {
			_, ok := protocols[strings.ToUpper(name)]
			c.must(ok, controllerNamesKey, "Controller listener with name %s defined in controller.listener.names not found in listener.security.protocol.map  (an explicit security mapping for each controller listener is required if listener.security.protocol.map is non-empty, or if there are security protocols other than PLAINTEXT in use)", strings.ToUpper(name))
		}
		c.require(!c.boolean("controller.quorum.auto.join.enable"), "controller.quorum.auto.join.enable",
			"controller.quorum.auto.join.enable is only supported when process.roles contains the 'controller' role.")
	}
	if n.Broker {
		c.brokerRole(n)
	}
}

func (c *checker) controllerRole(n *Node, strangerToVoters bool) {
	if !n.Broker {
		c.require(len(n.AdvertisedControllerListeners) == len(n.Listeners), listenersKey,
			"The listeners config must only contain KRaft controller listeners from controller.listener.names when process.roles=controller")
		if !c.isNull(interBrokerKey) {
			c.require(!slices.Contains(n.ControllerListenerNames, n.InterBrokerListenerName), controllerNamesKey,
				"controller.listener.names must not contain an explicitly set inter.broker.listener.name configuration value when process.roles=controller'")
		}
	}
	c.require(!strangerToVoters, votersKey,
		"If process.roles contains the 'controller' role, the node id %d must be included in the set of voters controller.quorum.voters=%s", n.NodeID, voterIDs(n.Quorum.Voters))
	c.require(len(n.AdvertisedControllerListeners) > 0, controllerNamesKey,
		"controller.listener.names must contain at least one value appearing in the 'listeners' configuration when running the KRaft controller role")
	if len(n.AdvertisedControllerListeners) > 0 {
		all := !slices.ContainsFunc(n.ControllerListenerNames, func(name string) bool {
			return !slices.ContainsFunc(n.Listeners, func(l Listener) bool { return l.Name == name })
		})
		c.require(all, controllerNamesKey,
			"controller.listener.names must only contain values appearing in the 'listeners' configuration when running the KRaft controller role")
	}
}

func (c *checker) brokerRole(n *Node) {
	if c.require(len(n.AdvertisedListeners) > 0, listenersKey,
		"There must be at least one broker advertised listener. Perhaps all listeners appear in controller.listener.names?") {
		told, open := listenerNames(n.AdvertisedListeners), listenerNames(n.Listeners)
		c.require(slices.Contains(told, n.InterBrokerListenerName), interBrokerKey,
			"inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based on currently configured listeners are %s", strings.Join(told, ","))
		subset := !slices.ContainsFunc(told, func(name string) bool { return !slices.Contains(open, name) })
		c.require(subset, advertisedKey,
			"advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found %s. The valid options based on the current configuration are %s", strings.Join(told, ","), strings.Join(open, ","))
	}
	c.cordoned(n)
	if n.InterBrokerProtocol.SASL() && c.sane("sasl.enabled.mechanisms") {
		mechanisms := c.list("sasl.enabled.mechanisms")
		if own, ok := c.props["listener.name."+strings.ToLower(n.InterBrokerListenerName)+".sasl.enabled.mechanisms"]; ok {
			mechanisms = splitList(javaTrim(own))
		}
		c.require(slices.Contains(mechanisms, c.text("sasl.mechanism.inter.broker.protocol")), "sasl.mechanism.inter.broker.protocol",
			"sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for inter-broker communication")
	}
}

func (c *checker) earlyStart(n *Node) {
	const key = "early.start.listeners"
	if c.isNull(key) || !c.sane(key) {
		return
	}
	for _, name := range c.list(key) {
		name = javaTrim(name)
		ok := name == "" || slices.Contains(listenerNames(n.Listeners), name)
		c.must(ok, key, "early.start.listeners contains listener %s, but this is not contained in listeners or controller.listener.names", name)
	}
}

func listenerNames(list []Listener) []string {
	var out []string
	for _, l := range list {
		out = append(out, l.Name)
	}
	return out
}

func voterIDs(voters []Voter) string {
	ids := map[string]bool{}
	for _, v := range voters {
		ids[fmt.Sprint(v.ID)] = true
	}
	return "Set(" + strings.Join(slices.Sorted(maps.Keys(ids)), ", ") + ")"
}
