import { firstSentence } from './docstring.js';
import type { Docstring } from './docstring.js';
import type { Exported } from './exports.js';
import type { Group } from './groups.js';
import { anchorOf, linksOf } from './links.js';
import type { Links } from './links.js';
import type { Member } from './members.js';

export interface PageProps {
  /** The module, e.g. `reconstruct/testing`. */
  readonly title: string;
  /** Markdown. */
  readonly intro: string;
  readonly groups: readonly Group[];
  readonly exports: readonly Exported[];
  /** Where types of other pages stand, by name: `api.md#kind`. @default - all are on this page */
  readonly elsewhere?: ReadonlyMap<string, string>;
}

const HEADER = '<!-- Generated from the docstrings in src/ by "npm run reference"; edit those instead. -->';

/**
 * A page of the reference, in Markdown.
 * @throws Error where something that is exported is in no group
 */
export function page({ title, intro, groups, exports, elsewhere = new Map() }: PageProps): string {
  const links = linksOf(exports, elsewhere);
  const parts = grouped(groups, exports);
  return [
    `${HEADER}\n\n# ${title}\n\n${intro}`,
    ...parts.map(({ group, members }) => contents(group, members, links)),
    ...parts.flatMap(({ group, members }) => [
      `## ${group.title}\n\n${group.intro}`,
      ...members.map((exported) => section(exported, links)),
    ]),
  ].join('\n\n');
}

interface Part {
  readonly group: Group;
  readonly members: readonly Exported[];
}

function grouped(groups: readonly Group[], exports: readonly Exported[]): Part[] {
  const left = new Set(exports);
  const take = (belongs: (exported: Exported) => boolean): Exported[] => {
    const taken = [...left].filter(belongs);
    for (const exported of taken) left.delete(exported);
    return taken;
  };
  const named = groups.map(({ names = [] }) =>
    names.flatMap((name) => take((exported) => exported.name === name)),
  );
  const parts = groups.map((group, index) => {
    const rest = group.files.flatMap((file) =>
      take((exported) => exported.file === file || (file.endsWith('/') && exported.file.startsWith(file))),
    );
    return { group, members: [...named[index]!, ...rest] };
  });
  const [lost] = left;
  if (lost)
    throw new Error(
      `${lost.name} of src/${lost.file}.ts is in no group of the reference: add it to groups.ts`,
    );
  return parts;
}

function contents({ title }: Group, members: readonly Exported[], links: Links): string {
  const lines = members.map((exported) => {
    const sentence = firstSentence(exported.docs);
    return `- [\`${exported.name}\`](${links.to(exported)})${sentence ? `: ${sentence}` : ''}`;
  });
  return `**[${title}](#${anchorOf(title)})**\n\n${lines.join('\n')}`;
}

function section(exported: Exported, links: Links): string {
  const { declaration, docs, members } = exported;
  const isPlain = /^\w+ \w+$/.test(declaration);
  return [
    `### ${links.headingOf(exported)}`,
    ...(isPlain ? [] : [`\`\`\`ts\n${declaration}\n\`\`\``]),
    ...mentioned(exported, links),
    ...text(docs, links, exported.name),
    ...members.map((member) => memberText(member, links, exported.name)),
  ].join('\n\n');
}

/** Links to what a declaration names, since code can't hold links. */
function mentioned({ name, declaration }: Exported, links: Links): string[] {
  const names = new Set(declaration.match(/\b[A-Z]\w+/g));
  names.delete(name);
  const found = [...names].flatMap((type) => links.linked(type) ?? []);
  return found.length > 0 ? [`Types: ${found.join(', ')}.`] : [];
}

function memberText({ name, parameters, type, optional, docs }: Member, links: Links, of: string): string {
  const typed = type === '' ? '' : `: ${links.code(type)}`;
  const head = `- **\`${name}${optional ? '?' : ''}\`**${links.code(parameters)}${typed}`;
  return [head, ...text(docs, links, of).map((paragraph) => paragraph.replaceAll(/^(?=.)/gm, '  '))].join(
    '\n\n',
  );
}

function text({ text, params, defaultValue, throws, see }: Docstring, links: Links, of: string): string[] {
  const paragraphs = [
    ...(text === '' ? [] : [text]),
    ...params.map((param) => ended(param.replace(/^(\w+)[\s-]*/, '`$1`: '))),
    ...(defaultValue === undefined ? [] : [defaultText(defaultValue)]),
    ...throws.map((what) => ended(`**Throws** ${what}`)),
    ...see.map((what) => `See <${what}>.`),
  ];
  return paragraphs.map((paragraph) => links.inText(paragraph, of));
}

function defaultText(value: string): string {
  const [, code = '', words] = /^(?:(\S.*?) )?- ([^]*)$/.exec(value) ?? [undefined, value];
  const parts = [...(code === '' ? [] : [`\`${code}\``]), ...(words === undefined ? [] : [words])];
  return ended(`Default: ${parts.join(', ')}`);
}

function ended(sentence: string): string {
  return sentence.endsWith('.') ? sentence : `${sentence}.`;
}
