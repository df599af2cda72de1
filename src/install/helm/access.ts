import type { Kind } from '../../contract/kind.js';
import type { FlagValues } from '../../contract/kind-flag.js';
import { objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { installManifests } from '../manifests.js';
import type { PolicyRule } from '../rules.js';
import { COMMON_PLACES, MANAGER, RELEASE_NAMESPACE, WATCHED_NAMESPACE } from './chart-props.js';
import type { ChartProps } from './chart-props.js';
import { kindOn } from './kind-values.js';
import { chartOptions, hasOwnPolicy, optionName, placeOf } from './options.js';
import type { ChartOption } from './options.js';
import { Template } from './template.js';

const RBAC = 'rbac.authorization.k8s.io/v1';

/**
 * Everything that gives rights. Which rights depends on the kinds, namespaces and options among the values, so each kind
 * is rendered by itself, in either way, and what is of one name is joined by Helm.
 */
export function accessTemplate(props: ChartProps): string {
  const items = props.kinds.flatMap((kind) => [
    `{{- if ${kindOn(kind, props.kinds)} }}`,
    '{{- if $.Values.watchNamespaces }}',
    ...itemsOf(kind, props, [WATCHED_NAMESPACE]),
    '{{- else }}',
    ...itemsOf(kind, props),
    '{{- end }}',
    '{{- end }}',
  ]);
  return `{{- define "reconstruct.access" -}}\nitems:\n${items.join('\n')}\n{{- end }}\n${JOINED}`;
}

/** What can't be read is `{ Error: ... }`, which would leave the operator without any rights. */
const JOINED = `{{- $access := include "reconstruct.access" $ | fromYaml }}
{{- if not $access.items }}
{{- fail (printf "the rights of the operator can't be told: %s" ($access.Error | default "no kind is on")) }}
{{- end }}
{{- $objects := dict }}
{{- range $access.items }}
{{- $id := printf "%s %s %s" .kind (.metadata.namespace | default "") .metadata.name }}
{{- if and (hasKey $objects $id) .rules }}
{{- $object := get $objects $id }}
{{- $_ := set $object "rules" (concat $object.rules .rules | uniq) }}
{{- else }}
{{- $_ := set $objects $id . }}
{{- end }}
{{- end }}
{{- range $id, $object := $objects }}
---
{{ toYaml $object }}
{{- end }}
`;

function itemsOf(kind: Kind, props: ChartProps, watchNamespaces?: readonly string[]): string[] {
  const options = chartOptions(kind, rightsProps(kind, props));
  const template = new Template(placesOf(options));
  const render = (flags: FlagValues): AnyObject[] =>
    rightsOf({ ...rightsProps(kind, props), flags, ...(watchNamespaces && { watchNamespaces }) }, kind);
  const always = { ...fixedFlags(options, props), ...namingFlags(options) };
  const base = render(always);
  const write = (objects: readonly AnyObject[]): string[] =>
    objects.length > 0 ? [template.write(template.filled(objects)).trimEnd()] : [];
  const placed = (objects: readonly AnyObject[]): string[] => {
    const everywhere = objects.filter(({ metadata }) => metadata.namespace === WATCHED_NAMESPACE);
    const once = objects.filter((object) => !everywhere.includes(object));
    const range = '{{- range $watched := $.Values.watchNamespaces }}';
    return [...write(once), ...(everywhere.length > 0 ? [range, ...write(everywhere), '{{- end }}'] : [])];
  };
  const added = options.flatMap((option) => {
    if (option.use !== 'adds') return [];
    return option.forms.flatMap((form) => {
      const value = form.replace('*', placeOf(option.flag));
      const objects = beyond(base, render({ ...always, [option.flag.name]: value }));
      const isOfForm = `hasPrefix ${prefixOf(form)} (${optionOf(option)} | default "")`;
      return [`{{- if ${isOfForm} }}`, ...placed(objects), '{{- end }}'];
    });
  });
  return [...placed(base), ...added];
}

function rightsProps(kind: Kind, props: ChartProps) {
  const { policy } = props;
  return {
    ...{ namespace: RELEASE_NAMESPACE, image: '', replicas: 1, managedBy: MANAGER },
    ...(policy && hasOwnPolicy(kind, { namespace: '', policy }) && { policy }),
  };
}

/** What gives rights to the operator and to users. */
function rightsOf(props: Omit<Parameters<typeof installManifests>[0], 'kinds'>, kind: Kind): AnyObject[] {
  return installManifests({ ...props, kinds: [kind] }).filter(({ apiVersion }) => apiVersion === RBAC);
}

/** What the second has and the first hasn't: of Roles that both have, the rules alone. */
function beyond(before: readonly AnyObject[], after: readonly AnyObject[]): AnyObject[] {
  return after.flatMap((object) => {
    const former = before.find((other) => objectId(other) === objectId(object));
    if (!former) return [object];
    const known = new Set(rulesOf(former).map((rule) => JSON.stringify(rule)));
    const rules = rulesOf(object).filter((rule) => !known.has(JSON.stringify(rule)));
    return rules.length > 0 ? [{ ...object, rules }] : [];
  });
}

function rulesOf({ rules = [] }: AnyObject): readonly PolicyRule[] {
  return rules as readonly PolicyRule[];
}

function placesOf(options: readonly ChartOption[]): Map<string, string> {
  const ofOptions = options.flatMap((option): (readonly [string, string])[] => {
    const place = placeOf(option.flag);
    if (option.use === 'names')
      return [[place, `${optionOf(option)} | default ${JSON.stringify(option.byDefault)}`]];
    return option.use === 'adds' ? [[place, `${optionOf(option)} | splitList "/" | last`]] : [];
  });
  return new Map([...COMMON_PLACES, [WATCHED_NAMESPACE, '$watched'], ...ofOptions]);
}

function namingFlags(options: readonly ChartOption[]): FlagValues {
  const naming = options.filter(({ use }) => use === 'names');
  return Object.fromEntries(naming.map(({ flag }) => [flag.name, placeOf(flag)]));
}

function fixedFlags(options: readonly ChartOption[], { flags = {} }: ChartProps): FlagValues {
  const fixed = options.filter(({ use, flag }) => use === 'fixed' && flag.name in flags);
  return Object.fromEntries(fixed.map(({ flag }) => [flag.name, flags[flag.name] ?? '']));
}

function optionOf({ flag }: ChartOption): string {
  return `$.Values.options.${optionName(flag)}`;
}

function prefixOf(form: string): string {
  return JSON.stringify(form.slice(0, form.indexOf('*')));
}
