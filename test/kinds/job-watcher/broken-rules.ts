/** A spec that breaks one rule of the schema alone. */
export interface BrokenRule {
  readonly spec: object;
  /** The spec put right, with as few changes as can be. */
  readonly valid: object;
  /** The field that the API server names. */
  readonly path: string;
  /** Parts of the message. */
  readonly messages: readonly string[];
}

const PATTERN = 'not a regular expression of RE2, which has no lookaround and no back-references';
const TIME = 'not a time that can pass; give numbers with the units h, m, s, ms, us or ns';
const FREQUENCY = 'at least 1s, with the units h, m, s, ms, us or ns, e.g. 15s';

function pattern(text: string, parserSays: string): BrokenRule[] {
  return ['namespacePatterns', 'jobNamePatterns'].map((field) => ({
    spec: { [field]: ['fine', text] },
    valid: { [field]: ['fine', 'x'] },
    path: `spec.${field}[1]`,
    messages: [PATTERN, parserSays],
  }));
}

function duration(text: string, parserSays = ''): BrokenRule[] {
  return ['completedTTL', 'failedTTL'].map((field) => ({
    spec: { [field]: text },
    valid: { [field]: '1h30m' },
    path: `spec.${field}`,
    messages: [TIME, parserSays],
  }));
}

/** Each CEL rule of JobWatcher, broken alone. */
export const brokenRules: readonly BrokenRule[] = [
  ...pattern('(', 'missing closing )'),
  ...pattern('(?=a)', 'invalid or unsupported Perl syntax'),
  ...pattern('(a)\\1', 'invalid escape sequence'),
  ...pattern('a{2000}', 'invalid repeat count'),
  ...duration('1d'),
  ...duration('90'),
  ...duration(''),
  ...duration('+'),
  ...duration('-1s'),
  ...duration('9999999999h'),
  { spec: { frequency: '0s' }, valid: { frequency: '1s' }, path: 'spec.frequency', messages: [FREQUENCY] },
  {
    spec: { frequency: 'often' },
    valid: { frequency: '15s' },
    path: 'spec.frequency',
    messages: [FREQUENCY],
  },
  {
    spec: { limits: { mode: 'Throttle' } },
    valid: { limits: { mode: 'Throttle', maxPerRun: 1 } },
    path: 'spec.limits',
    messages: ['without maxPerRun and maxPercent nothing is limited'],
  },
  {
    spec: { keepLast: { groupByLabel: 'app' } },
    valid: { keepLast: { groupByLabel: 'app', failed: 1 } },
    path: 'spec.keepLast',
    messages: ['without completed and failed nothing is kept'],
  },
  ...[
    { broken: { key: 'app', operator: 'In' }, valid: { key: 'app', operator: 'In', values: ['a'] } },
    { broken: { key: 'app', operator: 'Exists', values: ['a'] }, valid: { key: 'app', operator: 'Exists' } },
  ].map(({ broken, valid }) => ({
    spec: { selector: { matchExpressions: [broken] } },
    valid: { selector: { matchExpressions: [valid] } },
    path: 'spec.selector.matchExpressions[0].values',
    messages: ['In and NotIn need values; Exists and DoesNotExist take none'],
  })),
  {
    spec: { selector: { matchLabels: { ['a'.repeat(318)]: 'b' } } },
    valid: { selector: { matchLabels: { ['a'.repeat(317)]: 'b' } } },
    path: 'spec.selector.matchLabels',
    messages: ['the key of a label has at most 317 characters'],
  },
];

/** The same of the status. */
export const brokenStatus = {
  status: (length: number) => ({
    lastRun: {
      ...{ namespaces: 1, matched: 1, finished: 1, deleted: 0, failed: 0 },
      skipped: { ['N'.repeat(length)]: 1 },
    },
  }),
  most: 64,
  path: 'status.lastRun.skipped',
  message: 'a reason has at most 64 characters',
};

/** What no rule but the schema itself refuses, and the field that it names. */
export const outOfBounds: readonly { readonly spec: object; readonly path: string }[] = [
  { spec: { namespacePatterns: [] }, path: 'spec.namespacePatterns' },
  { spec: { jobNamePatterns: [] }, path: 'spec.jobNamePatterns' },
  {
    spec: { jobNamePatterns: Array.from({ length: 65 }, (_, index) => `x${index}`) },
    path: 'spec.jobNamePatterns',
  },
  { spec: { jobNamePatterns: ['a'.repeat(257)] }, path: 'spec.jobNamePatterns[0]' },
  { spec: { jobNamePatterns: [''] }, path: 'spec.jobNamePatterns[0]' },
  { spec: { jobNamePatterns: ['a', 'a'] }, path: 'spec.jobNamePatterns[1]' },
  { spec: { propagationPolicy: 'Orphan' }, path: 'spec.propagationPolicy' },
  { spec: { tracked: 'Keep' }, path: 'spec.tracked' },
  { spec: { ownerPolicy: { cronJob: 'Keep' } }, path: 'spec.ownerPolicy.cronJob' },
  { spec: { limits: { maxPerRun: 0 } }, path: 'spec.limits.maxPerRun' },
  { spec: { limits: { maxPercent: 0 } }, path: 'spec.limits.maxPercent' },
  { spec: { limits: { maxPercent: 101 } }, path: 'spec.limits.maxPercent' },
  { spec: { keepLast: { failed: -1 } }, path: 'spec.keepLast.failed' },
];

/** What is at the edge of the schema, and taken. */
export const edges: readonly object[] = [
  {},
  {
    jobNamePatterns: Array.from(
      { length: 64 },
      (_, index) => `^${'a'.repeat(index === 0 ? 254 : 62)}${index}`,
    ),
  },
  { jobNamePatterns: ['^(a+)+$', '(?i)pi', '\\pL', '[[:alpha:]]', 'a{1000}'] },
  { completedTTL: '0s', failedTTL: '+1.5h' },
  { completedTTL: '0', failedTTL: '1h2m3s4ms5us6ns' },
  { completedTTL: '1\u00b5s', failedTTL: '1\u03bcs' },
  { completedTTL: '2562047h47m16.854775807s' },
  { limits: { maxPerRun: 2147483647, maxPercent: 100 } },
  { selector: { matchLabels: { 'example.com/app': 'web' } } },
];
