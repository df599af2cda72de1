import { objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { installManifests } from '../manifests.js';
import type { InstallProps } from '../props.js';
import { renderProps } from './chart-props.js';
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
