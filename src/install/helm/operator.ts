import type { AnyObject } from '../../contract/object.js';
import { writeYaml } from '../../contract/yaml.js';
import { installManifests } from '../manifests.js';
import { COMMON_PLACES, IMAGE, renderProps } from './chart-props.js';
import type { ChartProps } from './chart-props.js';
import { partTemplates } from './parts.js';
import { Template } from './template.js';

/** What the chart has in templates of their own, or leaves to Helm. */
const ELSEWHERE = /^(Namespace|CustomResourceDefinition|(Cluster)?Role(Binding)?)$/;

interface Container {
  readonly args: readonly string[];
  readonly resources: object;
  readonly volumeMounts?: readonly object[];
}

interface PodSpec {
  readonly containers: readonly [Container];
  readonly volumes?: readonly object[];
}

/** The Deployment and what stands around it. */
export function operatorTemplate(props: ChartProps): string {
  const template = new Template(new Map([...COMMON_PLACES, [IMAGE, 'include "reconstruct.image" $']]));
  const without = installManifests(renderProps(props));
  const withPolicy = installManifests({ ...renderProps(props), policy: { text: '', parsed: {} } });
  const documents = without
    .filter(({ kind }) => !ELSEWHERE.test(kind) && kind !== 'Deployment')
    .map((object) => `---\n${template.write(template.filled(object))}`);
  const deployment = withPolicy.find(({ kind }) => kind === 'Deployment');
  return [
    ...documents,
    ...partTemplates(props, template),
    `---\n${template.write(deployment ? deploymentIn(template.filled(deployment), template) : {})}`,
  ].join('');
}

/** What the container needs, as it is rendered: the default of a value. */
export function defaultResources(props: ChartProps): object {
  const deployment = installManifests(renderProps(props)).find(({ kind }) => kind === 'Deployment');
  return deployment ? podOf(deployment).containers[0].resources : {};
}

function podOf({ spec }: AnyObject): PodSpec {
  return (spec as { template: { spec: PodSpec } }).template.spec;
}

function deploymentIn(deployment: AnyObject, template: Template): object {
  const spec = deployment.spec as { readonly template: { readonly metadata: object } };
  const { volumes, containers, ...pod } = podOf(deployment);
  const [{ args: _, resources: __, volumeMounts, ...container }] = containers;
  const whenPolicy = (member: object): Record<string, string> =>
    template.lines(() => `{{- if $.Values.policy }}\n${writeYaml(member)}{{- end }}`);
  const value = (name: string): Record<string, string> =>
    template.lines(
      (indent) =>
        `{{- with $.Values.${name} }}\n${name}:\n  {{- toYaml . | nindent ${indent + 2} }}\n{{- end }}`,
    );
  return {
    ...deployment,
    spec: {
      ...spec,
      replicas: template.text('{{ $.Values.replicas }}'),
      template: {
        ...spec.template,
        spec: {
          ...pod,
          ...['imagePullSecrets', 'nodeSelector', 'tolerations'].reduce(
            (all, name) => ({ ...all, ...value(name) }),
            {},
          ),
          ...template.lines(
            () => '{{- with $.Values.priorityClassName }}\npriorityClassName: {{ quote . }}\n{{- end }}',
          ),
          containers: [
            {
              ...container,
              ...template.lines(
                (indent) => `args:\n  {{- include "reconstruct.arguments" $ | nindent ${indent + 2} }}`,
              ),
              ...template.lines(
                (indent) => `resources:\n  {{- toYaml $.Values.resources | nindent ${indent + 2} }}`,
              ),
              ...whenPolicy({ volumeMounts }),
            },
          ],
          ...whenPolicy({ volumes }),
        },
      },
    },
  };
}
