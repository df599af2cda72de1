import { expect, test } from 'vitest';
import { NOTHING, Summary } from '../../../src/cli/diff/live.js';
import { markdownOf } from '../../../src/cli/diff/markdown.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { compareRendered } from '../../../src/engine/preview/rollout.js';

const deployment = (name: string, image: string, app = 'web'): AnyObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop' } },
  spec: {
    selector: { matchLabels: { app } },
    template: { spec: { containers: [{ name: 'web', image }] } },
  },
});

function compared(
  before: readonly AnyObject[],
  after: readonly AnyObject[],
  details = 0,
  recreate: boolean | 'orphan' = false,
): string {
  const summary = new Summary(details);
  summary.add('Page', { ...NOTHING, watched: after.length });
  summary.addObjects(compareRendered(before, after, () => ({ recreate })));
  return markdownOf(summary.diff());
}

test('a comment says first which pods are rolled and what is refused, then has a table, and details that are folded', () => {
  const before = [deployment('web', 'web:1'), deployment('api', 'web:1'), deployment('db', 'web:1')];
  const after = [deployment('web', 'web:2'), deployment('api', 'web:2'), deployment('db', 'web:1', 'db')];
  expect(compared(before, after)).toBe(`\
**2 Deployments would roll their pods; 1 can't be applied as rendered** (3 Page compared, with 3 objects: 2 to change, 1 refused)
<!-- reconstruct diff -->

| Objects | Change | For example |
| --- | --- | --- |
| 1 of 3 Deployment | can't be applied: \`.spec.selector.matchLabels.app can't be changed in place: give the object another name, or delete it, and it is created again\` | \`shop/db\` |
| 2 of 3 Deployment | \`.spec.template.spec.containers[].image\` changed: \`"web:1"\` → \`"web:2"\`; **pods are replaced** | \`shop/web\`, \`shop/api\` |

<details><summary>Details</summary>

\`\`\`diff
2 Deployments would roll their pods

Deployment: can't be applied: ImmutableField in 1 of 3
  e.g. shop/db
  .spec.selector.matchLabels.app can't be changed in place: give the object another name, or delete it, and it is created again

Deployment: .spec.template.spec.containers[].image changed in 2 of 3
  e.g. shop/web, shop/api; pods are replaced
- web:1
+ web:2
\`\`\`

</details>
`);
});

test('pods of what is deleted, and of what is created again, are counted', () => {
  const before = [deployment('web', 'web:1'), deployment('api', 'web:1'), deployment('db', 'web:1')];
  const after = [deployment('web', 'web:2'), deployment('api', 'web:1', 'api')];
  const text = compared(before, after, 0, true);
  expect(text).toContain(
    '**2 Deployments would roll their pods; 1 Deployment would be deleted, with its pods** (',
  );
  expect(text).toContain('would be deleted and created again; **pods are replaced** |');
  expect(text).toContain('would be deleted |');
  const gone = compared(before, []);
  expect(gone).toContain('**3 Deployments would be deleted, with their pods** (');
  const service = { ...deployment('web', 'web:1'), apiVersion: 'v1', kind: 'Service' };
  expect(compared([service], [])).toContain('**No pods would be rolled** (');
});

test('without a change it is one line, by which an earlier comment is replaced', () => {
  expect(compared([deployment('web', 'web:1')], [deployment('web', 'web:1')])).toBe(
    '**No pods would be rolled** (1 Page compared, with 1 object: no changes)\n<!-- reconstruct diff -->\n',
  );
});

test('nothing in a value is markup, and a long comment fits', () => {
  const text = compared([deployment('web', '|`@jane`<b>')], [deployment('web', '````\n@jane')], 1);
  expect(text).toContain(`\`"|'@jane'<b>"\``.replace('|', '\\|'));
  expect(text).toContain('\n`````diff\n');
  const many = Array.from({ length: 400 }, (_, at) => deployment(`web-${at}`, 'x'.repeat(200)));
  const long = compared(
    [],
    many.map((one, at) => ({ ...one, kind: `Kind${at}` })),
    400,
  );
  expect(long.length).toBeLessThan(60_000);
  expect(long).toContain('\n360 other changes\n');
});

test('values of a Secret stay out of it', () => {
  const secret = (value: string): AnyObject => ({
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'shop' } },
    stringData: { key: value },
  });
  expect(compared([secret('first')], [secret('second')], 1)).not.toMatch(/first|second/);
});
