/** A part of a page. */
export interface Group {
  readonly title: string;
  readonly intro: string;
  /** What it tells of first, in this order, whichever files declare it. */
  readonly names?: readonly string[];
  /** Files below `src/`, or folders that end with a slash; what else they declare follows in their order. */
  readonly files: readonly string[];
}

/** Of `reconstruct`. */
export const GROUPS: readonly Group[] = [
  {
    title: 'Defining a kind',
    intro:
      'One custom resource, its own children: what nearly every kind needs. What `defineKind` takes is [`KindProps`](#kindprops).',
    names: [
      ...['defineKind', 'KindProps', 'ChildTypeProps', 'RelatedTypeProps', 'ResourceTypeProps'],
      ...['defineCrd', 'CrdProps', 'SpecOf', 'StatusOf', 'PropsOf'],
      ...['KindConstruct', 'CustomResourceProps', 'StatusFunction', 'StatusInput', 'StatusReport'],
    ],
    files: [
      ...['contract/define-kind', 'contract/status', 'contract/hand-over'],
      ...['contract/define-crd', 'contract/typed-crd'],
    ],
  },
  {
    title: 'Readiness, status and errors',
    intro:
      'What a status function works with, and how a construct refuses on purpose: by throwing an [`OperatorError`](#operatorerror).',
    names: ['Readiness', 'Phase', 'childReadiness', 'worstReadiness', 'OperatorError', 'OperatorErrorProps'],
    files: ['contract/error', 'contract/readiness', 'contract/conditions'],
  },
  {
    title: 'Rendering manifests',
    intro: 'The pure half: a custom resource in, objects out, without a cluster.',
    names: [
      ...['renderStored', 'Render', 'RenderedKind', 'Policy', 'Rendering'],
      ...['RenderTogether', 'RenderedTogether', 'TogetherManifest', 'Finding'],
    ],
    files: ['synth/'],
  },
  {
    title: 'Custom resource definitions and types',
    intro: 'How a CRD is read, and how types of objects are named.',
    files: ['contract/crd', 'contract/resource'],
  },
  {
    title: 'Objects and names',
    intro: 'Small functions of objects, and the names that this project gives.',
    files: ['contract/object', 'contract/names', 'contract/projections'],
  },
  {
    title: 'The core contract',
    intro:
      'For kinds that are more than "one custom resource, its own children": a [`Kind`](#kind) of [controllers](#controller), each a pure function from what is known to a [`Plan`](#plan). How the engine carries a plan out is told in [the engine](../engine.md).',
    names: ['Kind', 'KindContext', 'OwnedKind', 'Controller', 'Watch', 'Reader', 'Plan'],
    files: ['contract/controller', 'contract/change', 'contract/kind'],
  },
  {
    title: 'Rights',
    intro: 'What an operator of given kinds has to be allowed to; `reconstruct install` gives it.',
    files: ['install/rules'],
  },
  {
    title: 'Kinds that come with it',
    intro:
      'What they do is told on pages of their own: [AppService](appservice.md), [StreamIngress](streamingress.md) and [JobWatcher](jobwatcher.md).',
    files: ['kinds/'],
  },
];

/** Of `reconstruct/testing`. */
export const TESTING_GROUPS: readonly Group[] = [
  {
    title: 'Sweeping a kind',
    intro:
      'Everything that may go wrong, tried on a real API server. [Testing a kind](../testing.md) tells of each check.',
    names: [
      'sweep',
      'SweepOptions',
      'requireHeld',
      'formatReport',
      'SweepReport',
      'CheckResult',
      'CheckName',
    ],
    files: ['testing/sweep/'],
  },
  {
    title: 'Rendering',
    intro: 'What snapshots are made of.',
    files: ['testing/render'],
  },
  {
    title: 'Tests of your own on the sandbox',
    intro:
      'A control plane for the time of a test, a way to it, and an operator on it that can be stopped and killed.',
    names: [
      'withSandbox',
      'WithSandboxOptions',
      'SandboxContext',
      'Cluster',
      'Operator',
      'eventually',
      'Sandbox',
      'SandboxClient',
    ],
    files: ['testing/', '../sandbox/'],
  },
];
