import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { kind } from '../../src/gizmo/kind.ts';

await sweepCommand(kind, async () => {
  const [sample] = await readSamples(kind, new URL('../../samples/gizmo.yaml', import.meta.url));
  const edited = {
    ...sample,
    spec: {
      ...sample.spec,
      // if: workload
      image: 'nginxinc/nginx-unprivileged:1.28-alpine',
      // if: ConfigMap
      config: { 'settings.ini': 'greeting = good morning' },
    },
  };
  return [sample, edited];
});
