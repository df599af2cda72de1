import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { portRule } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

/** The pod's spec, for a sample with these fields changed. */
function pod(changes = {}, policy = undefined) {
  const [daemonSet] = render(portRule, { ...sample, spec: { ...sample.spec, ...changes } }, { policy });
  return daemonSet.spec.template.spec;
}

test('the sample is rendered as it was', (t) => {
  const manifests = Yaml.stringify(...render(portRule, sample));

  t.assert.fileSnapshot(manifests, join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text],
  });
});

test('of all rights, it has the one that nftables asks for', () => {
  const { containers, securityContext, automountServiceAccountToken, volumes } = pod();

  assert.deepEqual(containers[0].securityContext, {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
    privileged: false,
    readOnlyRootFilesystem: true,
    runAsGroup: 0,
    runAsUser: 0,
  });
  assert.deepEqual(securityContext, { seccompProfile: { type: 'RuntimeDefault' } });
  assert.equal(automountServiceAccountToken, false);
  assert.equal(volumes, undefined);
});

test('what a user writes is in variables, and never in a program', () => {
  const [{ command, readinessProbe }] = pod().containers;
  const [{ command: other, readinessProbe: otherProbe, env }] = pod({ name: 'other', port: 53 }).containers;

  assert.deepEqual([other, otherProbe], [command, readinessProbe]);
  const values = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  assert.equal(values.COMMENT, 'other');
  assert.equal(values.PORT, '53');
  // The kubelet replaces these in a command.
  assert.doesNotMatch(command[2], /\$\(|\$\$/);
});

test('an admin chooses image and priority by policy', () => {
  const policy = { portrule: { image: 'example.com/nft:1', priorityClassName: 'system-node-critical' } };

  const { containers, priorityClassName } = pod({}, policy);

  assert.equal(containers[0].image, 'example.com/nft:1');
  assert.equal(priorityClassName, 'system-node-critical');
});
