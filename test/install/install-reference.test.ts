import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { leaseRules, rulesFor } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';

const page = readFileSync(join(repoFolder(), 'docs/reference/install.md'), 'utf8');
const kinds = [appService, jobWatcher, streamIngress];

/** The cells of the table below a heading, row by row. */
function rowsBelow(heading: string): string[][] {
  const section = page.split(`\n${heading}\n`)[1]!.split('\n#')[0]!;
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

test.each(kinds.map((kind) => [kind.name, kind] as const))(
  'the page says what each right of %s is for',
  (name, kind) => {
    const own = new Set([kind.type.plural, `${kind.type.plural}/status`]);
    const needed = [...rulesFor([kind]), ...leaseRules()].flatMap(({ resources }) => resources);
    const rows = rowsBelow('## Rights').filter(([of]) => of === `\`${name}\`` || of === 'each');
    const reported = rows
      .filter(([, resources]) => !resources!.startsWith('with'))
      .flatMap(([, resources]) => [...resources!.matchAll(/`([a-z/]+)`/g)].map(([, resource]) => resource!));
    expect([...new Set(reported.filter((resource) => resource !== '/status'))].sort()).toEqual(
      [...new Set(needed.filter((resource) => !own.has(resource)))].sort(),
    );
  },
);

test('the page lists the values of the chart', () => {
  const schema = readFileSync(join(repoFolder(), 'charts/reconstruct/values.schema.json'), 'utf8');
  const { properties } = JSON.parse(schema) as { properties: object };
  expect(rowsBelow('## Helm').map(([name]) => name)).toEqual(
    Object.keys(properties)
      .filter((name) => name !== 'global')
      .map((name) => `\`${name}\``),
  );
});
