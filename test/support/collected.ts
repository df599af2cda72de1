/** One value of what was scraped. */
interface Sample {
  readonly metric: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What Prometheus adds; a process doesn't know it of itself. */
const ADDED = ['job', 'namespace', 'pod'];

/**
 * The values that a query of PromQL asks for, without what it makes of them: those that match one of its selectors.
 * @param scraped the text format of Prometheus
 */
export function askedFor(expr: string, scraped: string): number[] {
  const samples = scraped.split('\n').flatMap(sampleOf);
  return [...expr.matchAll(/(\w+)\{([^}]*)\}/g)].flatMap(([, metric, matchers = '']) => {
    const wanted = [...matchers.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].filter(
      ([, label = '']) => !ADDED.includes(label),
    );
    return samples
      .filter((sample) => sample.metric === metric)
      .filter(({ labels }) =>
        wanted.every(([, label = '', operator = '', value = '']) => {
          const pattern = operator.includes('~') ? new RegExp(`^(?:${value})$`) : undefined;
          const text = labels[label] ?? '';
          return (pattern ? pattern.test(text) : text === value) === !operator.startsWith('!');
        }),
      )
      .map(({ value }) => value);
  });
}

function sampleOf(line: string): Sample[] {
  const [, metric, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (metric === undefined) return [];
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', text = '']) => [
    name,
    text,
  ]);
  return [{ metric, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }];
}
