// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { webApp } from './kind.mjs';

await sweepCommand(
  webApp,
  async ({ elsewhere }) => {
    const [sample] = await readSamples(webApp, new URL('sample.yaml', import.meta.url));
    return [
      { ...sample, spec: { ...sample.spec, namespace: elsewhere } },
      { ...sample, spec: { image: 'registry.k8s.io/pause:3.10', ingress: { enabled: false } } },
    ];
  },
  {
    // Other namespaces than those of the trial aren't there.
    notWalked: ['namespace'],
  },
);
