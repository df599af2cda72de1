/** What a pattern asks for, in words. */
export interface PatternHelp {
  /** What a value that doesn't match isn't: `a quantity`. */
  readonly name: string;
  readonly examples: readonly string[];
}

const LABEL_VALUE = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const DNS_LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DNS_SUBDOMAIN = `${DNS_LABEL}(\\.${DNS_LABEL})*`;

const QUANTITY: PatternHelp = { name: 'a quantity', examples: ['500m', '2', '1Gi'] };
const PERCENTAGE: PatternHelp = { name: 'a percentage', examples: ['0%', '25%', '100%'] };

/** The patterns that Kubernetes gives to names, labels and the like, and that CRDs repeat. */
const KNOWN: Readonly<Record<string, PatternHelp>> = {
  [`^${DNS_LABEL}$`]: {
    name: 'a name of lower-case letters, digits and, between them, dashes',
    examples: ['web', 'web-1'],
  },
  [`^${DNS_SUBDOMAIN}$`]: {
    name: 'a name of lower-case letters, digits and, between them, dashes and dots',
    examples: ['web-1', 'web.example.com'],
  },
  [`^(\\*\\.)?${DNS_SUBDOMAIN}$`]: {
    name: 'a hostname',
    examples: ['shop.example.com', '*.example.com'],
  },
  [`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?${LABEL_VALUE}$`]: {
    name: 'the key of a label',
    examples: ['tier', 'example.com/tier'],
  },
  [`^(${LABEL_VALUE})?$`]: {
    name: 'the value of a label: letters, digits and, between them, dashes, dots and underscores',
    examples: ['front-end', 'v1.2_3'],
  },
  '^(0|[1-9][0-9]*)%$': PERCENTAGE,
  '^(100|[0-9]|[1-9][0-9])%$': PERCENTAGE,
};

/** The pattern that Kubernetes itself gives to quantities has many forms. */
const OF_QUANTITIES = /\[KMGTPE\]i/;

/** @returns nothing for a pattern that isn't known: then it has to speak for itself */
export function helpWithPattern(pattern: string): PatternHelp | undefined {
  if (Object.hasOwn(KNOWN, pattern)) return KNOWN[pattern];
  return OF_QUANTITIES.test(pattern) && pattern.startsWith('^') && !pattern.includes('Memory')
    ? QUANTITY
    : undefined;
}
