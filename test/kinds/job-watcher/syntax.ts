import fc from 'fast-check';

/**
 * Patterns that stand for a rule of RE2 each: what it takes, refuses, and where its limits are. Not there are names of
 * Unicode classes that some releases of Go know and some don't.
 */
const PATTERNS = [
  ...words(String.raw`
    ( ) [ ] { } * + ? | ^ $ . / - () (a a) (|a) ((a) (a)) (?:a) (?:a (?P<n>a) (?<n>a) (?P<n>a)(?P<n>b) (?P<n>a)(?P<n>
    {+ {{2} {{2}+ a{,2}* [[:] [^[:] [[:]{+
    (?P<>a) (?P<1>a) (?P<n (?P=n) (?P<é>a) (?#c) (?i)a (?i (?is-m:a) (?-i)a (?i-)a (?z)a (?--i)a (?U)a+
    (?u)a (?=a) (?!a) (?<=a) (?<!a) (?>a) (?|a) a** a*+ a++ a?? a*? a+? a{1} a{,1} a{1,} a{1,2} a{2,1}
    a{ a{1 a{a} a{1000} a{1001} a{0} a{0,1000} a{1}{2} a{1}* (a{1})* {1} ^* (^)* |* (?i)* (a{10}){100}
    (a{10}){101} ((a{10}){10}){10} ((a{10}){10}){11} (a{1000}){1} (?:a{500}){3} [a] [^a] [^] []a] [^]a]
    [a-] [-a] [a-b-c] [b-a] [a-\d] [\d-a] [[:alpha:]] [[:^alpha:]] [[:foo:]] [:alpha:] [[:alpha:]
    [[.a.]] [[=a=]] [a\]b] [\b] [\x41-\x5a] \d \D \w \s \h \v \N \R \X \G \K \A \z \Z \b \B \C \Qa+b\E
    \Qa \E a\E \1 (a)\1 \8 \0 \01 \012 \777 \k<n> \g1 \x41 \x4 \x{41} \x{10FFFF} \x{110000} \x{} \x{ \xg
    \cA \e \a \f \t \n \r \_ \- \/ \é \" \< \> \' \@ \# \pL \PL \p{L} \p{^L} \P{^L} \p{Lu} \p{Greek}
    \p{Foo} \p{} \p \p{ \pé \p{Any} \p{Cs} \p{Script=Greek} \p{IsGreek} \p{Han} \p{Latin} \p{Kawi}
    [\p{Nd}-z] é 😀 [é-ü] [😀-😂] (?i)ſ (?i)K (?m)^a$ (?s). ^(a+)+$ ^(a|aa)+$ (.*)*x
    ^(([a-z])+.)+[A-Z]([a-z])+$ (a?){50}a{50} (x+x+)+y (a|a?)+$`),
  ...[
    '\\',
    '\\u0041',
    '\\ ',
    '\\`',
    'a\nb',
    '\u0000',
    'a b',
    '\u2028',
    '('.repeat(100) + ')'.repeat(100),
    '(?:'.repeat(60) + ')'.repeat(60),
    '['.repeat(200),
    'a|'.repeat(120),
    '(a*)'.repeat(60),
  ],
];

const ATOMS = [
  ...words(String.raw`
    a b 0 - _ . ^ $ | ( ) (?: (?i) (?i: (?P<n> (?<m> (?= (?! [ ] [^ [a-z] [[:digit:]] [: :] - && * + ? {
    } {2} {2,} {,2} {0,3} {1001} \d \W \b \pN \p{Greek} \p{Foo} \x \x41 \x{ \Q \E \1 \C \z \Z é 😀 / , <
    > = ! : # " ' 1 9`),
  ...['\\', ' ', '\n', '`'],
];

/** Regular expressions, right and wrong: those that rules of RE2 are about, and as many mixtures as are wanted. */
export function patterns(random: number, seed: number): string[] {
  return mixtures(PATTERNS, ATOMS, 9, random, seed).filter((text) => text !== '' && text.length <= 256);
}

/** Durations at the edges of what Go reads, and just beyond. */
const DURATIONS = [
  ...words(String.raw`
    0 +0 -0 00 0s -0s + - . .s 1 1. 1.s .1s -.1s +.1s ..1s 1..s 1h 1m 1s 1ms 1us 1ns 1µs 1μs 1d 1w 1y 1H
    1S 1Ms 1sec 1min 1hs 1sm 1h1h 1s1m1h 1h+1m 1h-1m --1h +-1h 1e3s 0x1s 1_000s 1,5s ١s -1ns -0.1ns
    -0.9ns 0.9ns -0.0000000001s -1h -2562047h47m16.854775808s -2562047h47m16.854775809s
    2562047h47m16.854775807s 2562047h47m16.854775808s 2562047h47m16.8547758079s
    2562047h47m16s854775807ns 9223372036854775807ns 9223372036854775808ns 9223372036854775807.9ns
    9223372036854775.807us 9223372036854775.808us 9223372036.854775807s 9223372036.8547758075s
    9223372036.854775808s 153722867m 153722867.28m 153722867.3m 2562047.788015215h 2562047.7880152155h
    2562047.788015216h 2562047.79h 18446744073709551615ns 1h18446744073709551616ns 99999999999999999999h
    0.99999999999999999999s 0.999999999s 0.9999999999s 999999999ns 1000000000ns 999999.999us
    00000000000000000000000000000000000000000000000000000000000001s
    0.000000000000000000000000000000000000000000000000000000001s
    1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s
    1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s 0.3333333333333333333h
    0.9223372036854775807h 0.9223372036854775808h
    111111111111111111111111111111111111111111111111111111111111ns`),
  ...['', '1h 1m', ' 1h', '1h ', '1 h'],
];

const PARTS = [
  ...words(String.raw`
    0 1 9 15 59 60 999 1000 2562047 9223372036 854775807 854775808 . . .5 .0 .999999999 h m s ms us ns
    µs μs h m s d + - e _`),
  ...[' '],
];

/** Durations, right and wrong, made in the same way. */
export function durations(random: number, seed: number): string[] {
  const terms = fc
    .sample(
      fc.array(
        fc.tuple(
          fc.constantFrom('', '0', '7', '15', '90', '1000', '2562046', '9223372035'),
          fc.constantFrom('', '', '.', '.5', '.25', '.000000001', '.9999999999', '.3333333333333333333'),
          fc.constantFrom('h', 'm', 's', 'ms', 'us', 'µs', 'μs', 'ns'),
        ),
        { minLength: 1, maxLength: 4 },
      ),
      { numRuns: Math.ceil(random / 2), seed },
    )
    .map((some) => some.map((term) => term.join('')).join(''));
  return [...new Set([...mixtures(DURATIONS, PARTS, 5, Math.floor(random / 2), seed), ...terms])];
}

function mixtures(
  whole: readonly string[],
  parts: readonly string[],
  most: number,
  random: number,
  seed: number,
): string[] {
  const made = fc
    .sample(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: most }), { numRuns: random, seed })
    .map((some) => some.join(''));
  return [...new Set([...whole, ...made])];
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
