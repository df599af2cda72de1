import type { StructuralSchema } from '../../contract/crd.js';
import { kindName, runArguments } from '../arguments.js';
import { RELEASE_NAMESPACE, renderProps, WATCHED_NAMESPACE } from './chart-props.js';
import type { ChartProps } from './chart-props.js';
import { kindOn } from './kind-values.js';
import { chartOptions, optionName, placeOf } from './options.js';

/** What the templates share. */
export function helpersTemplate(props: ChartProps): string {
  const kinds = [...props.kinds].sort((a, b) => (kindName(a) < kindName(b) ? -1 : 1));
  return `{{/* The image, with tag, digest, or both. */}}
{{- define "reconstruct.image" -}}
{{- $.Values.image.repository }}
{{- with $.Values.image.tag }}:{{ . }}{{ end }}
{{- with $.Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* The full names of the kinds that are on. */}}
{{- define "reconstruct.kinds" -}}
{{- $kinds := list }}
${kinds.map((kind) => `{{- if ${kindOn(kind, props.kinds)} }}{{ $kinds = append $kinds "${kindName(kind)}" }}{{ end }}`).join('\n')}
{{- join "," $kinds }}
{{- end }}

{{/* What the container is started with. */}}
{{- define "reconstruct.arguments" -}}
${argumentLines(props).join('\n')}
{{- end }}
`;
}

/** The arguments with everything that may be among them, each with the condition on which it is. */
function argumentLines(props: ChartProps): string[] {
  const options = props.kinds.flatMap((kind) =>
    chartOptions(kind, { ...props, namespace: RELEASE_NAMESPACE }),
  );
  const flags = Object.fromEntries(options.map(({ flag }) => [flag.name, placeOf(flag)]));
  const all = runArguments({
    ...{ ...renderProps(props), flags, policy: { text: '', parsed: {} } },
    watchNamespaces: [WATCHED_NAMESPACE],
  });
  return all.flatMap((argument) => {
    const [name = '', value] = argument.split('=', 2);
    const line = (text: string): string => `- {{ printf "${name}=%v" (${text}) | quote }}`;
    const on = (condition: string, text: string): string[] => [`{{- ${condition} }}`, text, '{{- end }}'];
    if (name === '--kinds') return [line('include "reconstruct.kinds" $')];
    if (name === '--watch-namespace')
      return on('with $.Values.watchNamespaces', line('sortAlpha . | join ","'));
    if (name === '--policy') return on('if $.Values.policy', `- ${argument}`);
    const option = options.find(({ flag }) => flag.name === name);
    if (!option || value === undefined) return [`- ${argument}`];
    if (option.use === 'fixed') return fixed(name, props);
    return on(`with $.Values.options.${optionName(option.flag)}`, line(textOf(option.flag)));
  });
}

function fixed(name: string, { flags = {} }: ChartProps): string[] {
  const value = flags[name];
  return value === undefined ? [] : [`- ${JSON.stringify(`${name}=${[value].flat().join()}`)}`];
}

function textOf({ list, schema }: { readonly list?: boolean; readonly schema?: StructuralSchema }): string {
  if (list) return 'join "," .';
  // Helm reads numbers as floating ones.
  return schema?.type === 'integer' ? 'int .' : '.';
}
