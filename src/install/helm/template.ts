import { writeYaml } from '../../contract/yaml.js';

/** Text of a template with a line break between lines; what it is indented by, in spaces, is told. */
export type Lines = (indent: number) => string;

/**
 * Objects become a template: what stands in them for a value becomes an expression of it. YAML can't hold expressions,
 * so words that no manifest has stand for them until it is written.
 */
export class Template {
  private readonly fragments: Lines[] = [];

  /** @param places what stands for a value in the objects, by the expression of it */
  constructor(private readonly places: ReadonlyMap<string, string>) {}

  /** An object with all that stands in it for values made ready to be written. */
  filled<T>(value: T): T {
    return this.deep(value) as T;
  }

  /** Stands for a value, which is written as this text. */
  text(fragment: string): string {
    this.fragments.push(() => fragment);
    return `zztemplate${this.fragments.length - 1}zz`;
  }

  /** A member of an object, in whose place these lines are written. */
  lines(fragment: Lines): Record<string, string> {
    this.fragments.push(fragment);
    return { [`zztemplate${this.fragments.length - 1}zz`]: '' };
  }

  /** As YAML, with expressions in it. */
  write(value: unknown): string {
    const text = writeYaml(value).replaceAll('{{', '{{ "{{" }}');
    return text
      .replaceAll(/^( *)zztemplate(\d+)zz: .*$/gm, (_, indent: string, index: string) =>
        indented(this.fragment(index)(indent.length), indent.length),
      )
      .replaceAll(/zztemplate(\d+)zz/g, (_, index: string) => this.fragment(index)(0));
  }

  private fragment(index: string): Lines {
    return this.fragments[Number(index)] ?? (() => '');
  }

  private deep(value: unknown): unknown {
    if (typeof value === 'string') return this.string(value);
    if (Array.isArray(value)) return value.map((item) => this.deep(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.deep(member)]));
  }

  private string(value: string): string {
    const whole = this.places.get(value);
    if (whole !== undefined) return this.text(`{{ ${whole} | quote }}`);
    const found = [...this.places].filter(([place]) => value.includes(place));
    if (found.length === 0) return value;
    const pattern = new RegExp(found.map(([place]) => place).join('|'), 'g');
    const format = JSON.stringify(value.replaceAll('%', '%%').replaceAll(pattern, '%s'));
    const values = [...value.matchAll(pattern)].map(([place]) => `(${this.places.get(place) ?? ''})`);
    return this.text(`{{ printf ${format} ${values.join(' ')} | quote }}`);
  }
}

/** Every line that isn't empty, moved to the right. */
export function indented(text: string, by: number): string {
  return text.replaceAll(/^(?=.)/gm, ' '.repeat(by));
}
