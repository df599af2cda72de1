import { expect, test } from 'vitest';
import { streamIngress } from './builders.js';
import { controllers, nginxService, reconcile, tcpServices, upstream } from './world.js';

const { statuses } = controllers();
const cr = streamIngress();
const cluster = [...upstream, nginxService()];

test('nothing is said of a port that is open, or is about to be opened', () => {
  expect(reconcile(statuses, [cr, ...cluster]).explain!()).toEqual([]);
  const open = [...upstream, nginxService(9000), tcpServices({ 9000: 'shop/db:5432' })];
  expect(reconcile(statuses, [cr, ...open]).explain!()).toEqual([]);
});

test('who is refused, or lacks something, is told why', () => {
  const late = streamIngress({ name: 'late', minute: 1 });
  const [found, ...others] = reconcile(statuses, [late, cr, ...cluster]).explain!();
  expect(others).toEqual([]);
  expect(found).toMatchObject({ of: { kind: 'StreamIngress', name: 'late' }, differs: false });
  expect(found!.summary).toMatch(/^would not be Ready: PortConflict: 9000\/TCP is held by StreamIngress web/);

  const [alone] = reconcile(statuses, [cr, nginxService()]).explain!();
  expect(alone!.summary).toMatch(/^would not be Ready: ServiceNotFound: /);
});

test('so is who names a class that is none', () => {
  const other = streamIngress({ className: 'other' });
  expect(reconcile(statuses, [other], 'other').explain!()[0]!.summary).toMatch(
    /^would not be Ready: ClassNotFound: /,
  );
});
