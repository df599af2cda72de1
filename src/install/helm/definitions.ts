import { installManifests } from '../manifests.js';
import { COMMON_PLACES, renderProps } from './chart-props.js';
import type { ChartProps } from './chart-props.js';
import { kindOn } from './kind-values.js';
import { Template } from './template.js';

/** The CRDs, which Helm brings up to date and never takes away. */
export function definitionTemplates(props: ChartProps): { readonly name: string; readonly text: string }[] {
  const template = new Template(new Map(COMMON_PLACES));
  const all = installManifests(renderProps(props)).filter(({ kind }) => kind === 'CustomResourceDefinition');
  return props.kinds.map((kind) => {
    const { name } = kind.crd.metadata;
    const found = all.filter(({ metadata }) => metadata.name === name);
    const kept = found.map((crd) => ({
      ...crd,
      metadata: {
        ...crd.metadata,
        annotations: { ...crd.metadata.annotations, 'helm.sh/resource-policy': 'keep' },
      },
    }));
    const text = kept.map((crd) => template.write(template.filled(crd))).join('---\n');
    return {
      name: `crd-${name}.yaml`,
      text: `{{- if and $.Values.crds.enabled (${kindOn(kind, props.kinds)}) }}\n${text}{{- end }}\n`,
    };
  });
}
