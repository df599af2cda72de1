import type { Exported } from './exports.js';

/** Where the names of an API are told of. */
export interface Links {
  /** What stands above the section. */
  headingOf(exported: Exported): string;
  to(exported: Exported): string;
  /** The name in code, linked; undefined where it is told of nowhere. */
  linked(name: string): string | undefined;
  /** A type, in code and with links. */
  code(type: string): string;
  /** Markdown, in which the names that stand in code are linked, but for the one that it is about. */
  inText(markdown: string, about: string): string;
}

/** @param elsewhere where names of other pages stand: a page and an anchor */
export function linksOf(exports: readonly Exported[], elsewhere: ReadonlyMap<string, string>): Links {
  const headingOf = (exported: Exported): string => {
    const { name, isType, isClass } = exported;
    const isTwice = exports.some((other) => other !== exported && anchorOf(other.name) === anchorOf(name));
    return isTwice && (isType || isClass) ? `${name} (${isType ? 'type' : 'class'})` : name;
  };
  const to = (exported: Exported): string => `#${anchorOf(headingOf(exported))}`;
  const targets = new Map([...elsewhere, ...exports.map((one): [string, string] => [one.name, to(one)])]);
  const linked = (name: string): string | undefined => {
    const target = targets.get(name);
    return target === undefined ? undefined : `[\`${name}\`](${target})`;
  };
  return {
    ...{ headingOf, to, linked },
    // Strings are matched first, so that nothing in them is a name.
    code: (type) =>
      type
        .split(/('[^']*'|"[^"]*"|\b[A-Z]\w*\b)/)
        .filter((piece) => piece !== '')
        .reduce<string[]>((pieces, piece) => {
          const link = linked(piece);
          const last = pieces.at(-1);
          if (link !== undefined) return [...pieces, link];
          if (last?.startsWith('`')) return [...pieces.slice(0, -1), `${last.slice(0, -1)}${piece}\``];
          return [...pieces, `\`${piece}\``];
        }, [])
        .join(''),
    inText: (markdown, about) =>
      markdown.replaceAll(/(?<!\[)`(\w+)`/g, (code, name: string) =>
        name === about ? code : (linked(name) ?? code),
      ),
  };
}

/** As GitHub makes it of a heading. */
export function anchorOf(heading: string): string {
  const words = heading.toLowerCase().replaceAll(/[^\w\s-]/g, '');
  return words.replaceAll(' ', '-');
}

/** Where the names of a page stand, seen from another. */
export function placesOn(file: string, exports: readonly Exported[]): Map<string, string> {
  const links = linksOf(exports, new Map());
  return new Map(exports.map((exported) => [exported.name, file + links.to(exported)]));
}
