import fc from 'fast-check';

/** Plain scalars that parsers are known to disagree about. */
const WORDS = `
  E0 e1 1e3 1E3 1e+3 1e-3 1e 1.e3 1e1_0 1_0e1 1e400 -1e400 1e-400 1e21 0x1f 0X1F -0x1f 0x 0xg
  0_x1f 0x1_f 0xffffffffffffffff -0xffffffffffffffff 0o7 0O7 0o8 -0o17 010 -010 +010 08 089 0_7 00
  0b11 0b2 0B11 -0b1 0b+1 0b-1 0777777777777777777777777 1_000 1__0 _1 1_ +_1 -_ _ + - .
  9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775808
  18446744073709551615 18446744073709551616 -9223372036854775809 99999999999999999999 .5 +.5 -.5
  5. .5. ._5 .5_0 .1__2 .5e3 .e3 1.5 -1.5 0.0 -0 -0.0 +0 .inf .Inf .INF +.inf -.inf -.Inf .iNF inf
  Infinity .nan .NaN .NAN NaN +.nan ~ null Null NULL nULL true True TRUE tRUE false yes Yes YES
  yEs no No on On ON off Off OFF y Y n N t f T F o = << < == "" '' 1:30 12:30:45 190:20:30.15
  2026-01-01 2026-1-1 2026-01-01T00:00:00Z 2026-13-45 1.2.3 1-2 1+2 0.10 1.10 1,000 1k 5m 10%
  0x1p-2 1/2 127.0.0.1 "yes" '010' !!str !!int !!null
`
  .trim()
  .split(/\s+/);

/** The same with tags and spaces. */
const PHRASES = `
  2026-01-01 00:00:00 | !!str 010 | !!str yes | !!int 010 | !!int 1.5 | !!int "7" | !!int x
  !!float 3 | !!float .5 | !!float x | !!bool yes | !!bool "on" | !!bool 1 | !!null ~ | !!null ""
  !!null 0 | !!binary aGk= | !!binary a= | !x 010 | ! 010 | !!timestamp 2026-01-01
  !<tag:yaml.org,2002:int> 3 | !!merge x | !!str <<
`
  .trim()
  .split(/ \| |\n\s+/);

const PIECES = `
  0 1 7 8 9 12 . - + _ e E x o b 0x 0o 0b f inf nan yes No on true null ~ = < : T Z -01 2026 / % !
`
  .trim()
  .split(/\s+/);

/** Scalars as YAML writes them, plain, quoted and with tags. The same seed gives the same ones. */
export function scalars(seed: number, count: number): string[] {
  const text = fc
    .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 5 })
    .map((pieces) => pieces.join(''));
  const plain = text.filter((each) => !/^[%!]|^[-:]$|:$/.test(each));
  const tag = fc.constantFrom('!!str', '!!int', '!!float', '!!bool', '!!null', '!x');
  const scalar = fc.oneof(
    { arbitrary: plain, weight: 8 },
    { arbitrary: fc.tuple(tag, plain).map((parts) => parts.join(' ')), weight: 1 },
    { arbitrary: text.map((each) => JSON.stringify(each)), weight: 1 },
  );
  return [...new Set([...WORDS, ...PHRASES, ...fc.sample(scalar, { numRuns: count, seed })])];
}
