import { objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { installManifests } from '../manifests.js';
import type { InstallProps } from '../props.js';
import { MONITORING_PARTS } from '../monitoring/props.js';
import type { MonitoringPart } from '../monitoring/props.js';
import { INSTALLATION_LABELS } from '../names.js';
import { renderProps, RUNBOOKS_PLACE } from './chart-props.js';
import type { ChartProps } from './chart-props.js';
import type { Template } from './template.js';

/** Something that is installed only where a value says so. */
interface Part {
  /** When it is, as an expression of a template. */
  readonly condition: string;
  /** What `install` needs to be told to make it. */
  readonly props: Partial<InstallProps>;
  /** What values decide on within its objects. @default - nothing but what every object has */
  readonly written?: (object: AnyObject, template: Template) => object;
}

/** Whatever is optional, beside kinds and rights: what an option of `install` adds in objects is added here by a value. */
const PARTS: readonly Part[] = [
  {
    condition: '$.Values.policy',
    props: { policy: { text: '', parsed: {} } },
    written: ({ data: _, ...configMap }, template) => ({
      ...configMap,
      ...template.lines(
        (indent) => `data:\n  policy.yaml: |\n    {{- toYaml $.Values.policy | nindent ${indent + 4} }}`,
      ),
    }),
  },
  ...MONITORING_PARTS.map((part) => ({
    condition: `$.Values.monitoring.${partValue(part)}`,
    props: { monitoring: { parts: [part], runbooks: RUNBOOKS_PLACE } },
    written: withMonitoringLabels,
  })),
];

/** Templates of what the parts have beyond an installation without them. */
export function partTemplates(props: ChartProps, template: Template): string[] {
  const known = new Set(installManifests(renderProps(props)).map(objectId));
  return PARTS.flatMap(({ condition, props: more, written = (object) => object }) => {
    const objects = installManifests({ ...renderProps(props), ...more });
    const added = objects.filter((object) => !known.has(objectId(object)));
    return [
      `{{- if ${condition} }}\n`,
      ...added.map((object) => `---\n${template.write(written(template.filled(object), template))}`),
      '{{- end }}\n',
    ];
  });
}

/** How a part of what watches over the operator is called among the values. */
export function partValue(part: MonitoringPart): string {
  return part.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** With the labels of the values, which come before those that a part has by itself. */
function withMonitoringLabels(object: AnyObject, template: Template): object {
  const labels = Object.entries(object.metadata.labels ?? {});
  const isFixed = ([name]: readonly [string, string]): boolean => INSTALLATION_LABELS.includes(name);
  const own = labels.filter((label) => !isFixed(label)).flat();
  const byDefault = ['dict', ...own.map((text) => JSON.stringify(text))].join(' ');
  const merged = `merge (deepCopy ($.Values.monitoring.labels | default dict)) (${byDefault})`;
  return {
    ...object,
    metadata: {
      ...object.metadata,
      labels: {
        ...Object.fromEntries(labels.filter(isFixed)),
        ...template.lines(
          (indent) => `{{- with ${merged} }}\n{{- toYaml . | nindent ${indent} }}\n{{- end }}`,
        ),
      },
    },
  };
}
