import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';
import { kinds, words } from './scripts/eslint/words.mjs';

/** Rooms below the command and the testing kit. */
const below = [
  ...['contract', 'values', 'telemetry', 'client', 'author', 'validate', 'render', 'kinds', 'engine'],
  'install',
];

/** Who may import whom inside src/ (docs/decisions/0002-layers.md). A layer always may import itself. */
const layers = {
  contract: [],
  values: ['contract'],
  telemetry: ['contract', 'values'],
  client: ['contract', 'values', 'telemetry'],
  validate: ['contract', 'values'],
  render: ['contract', 'values', 'validate'],
  author: ['contract', 'values', 'render'],
  engine: ['contract', 'values', 'telemetry', 'client'],
  // A kind brings handlers of its own steps.
  kinds: ['contract', 'values', 'telemetry', 'client', 'author', 'render', 'engine'],
  install: ['contract', 'values', 'telemetry', 'client'],
  testing: below,
  cli: below,
};

const sandboxPattern = {
  // Escaped, since a pattern that begins with # is a comment.
  group: ['\\#sandbox/**', '**/sandbox/**'],
  message: 'Of src/, only the testing kit knows the sandbox',
};

const layerRules = Object.entries(layers).map(([layer, allowed]) => ({
  files: [`src/${layer}/**`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        paths: [
          {
            name: 'yaml',
            importNames: ['parse', 'parseAllDocuments', 'stringify'],
            message: 'They read and write other values than kubectl does; use values/yaml.ts',
          },
        ],
        patterns: [
          {
            group: [...Object.keys(layers), 'index.js']
              .filter((other) => other !== layer && !allowed.includes(other))
              .flatMap((other) => [`**/../${other}`, `**/../${other}/**`]),
            message: `src/${layer} may import only ${['itself', ...allowed].join(', ')}`,
          },
          ...(layer === 'testing' ? [] : [sandboxPattern]),
        ],
      },
    ],
  },
}));

const namedExports = {
  selector: 'ExportDefaultDeclaration',
  message: 'Export by name, so that it is called the same everywhere.',
};

const staticImports = {
  selector: 'ImportExpression[source.value=/^\\./]',
  message: 'Only src/cli loads our own modules on demand: elsewhere the rule of the layers would not see it.',
};

export default tseslint.config(
  { ignores: ['lib/', 'dist/', 'imports/', 'node_modules/', 'scripts/site/.vitepress/.temp/'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ['vitest.config.ts'] } } },
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ExportDefaultDeclaration',
          message: 'Export by name, so that it is called the same everywhere.',
        },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
    },
  },
  {
    files: ['vitest.config.ts', 'eslint.config.js', '**/*.mjs'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  ...layerRules,
  {
    // Texts come from users, registries and servers: one that takes long to match holds up everything.
    files: ['src/**', 'sandbox/**', 'scripts/**'],
    plugins: { regexp },
    rules: { 'regexp/no-super-linear-backtracking': 'error', 'regexp/no-super-linear-move': 'error' },
  },
  {
    files: ['src/**'],
    ignores: ['src/cli/**'],
    rules: { 'no-restricted-syntax': ['error', namedExports, staticImports] },
  },
  {
    files: ['src/**', 'sandbox/**'],
    plugins: { words: { rules: { words, kinds } } },
    rules: { 'words/words': 'error' },
  },
  {
    files: ['src/{contract,values,client,engine,render,author}/**'],
    rules: { 'words/kinds': 'error' },
  },
  {
    // Types find undefined names elsewhere.
    files: ['**/*.js', '**/*.mjs'],
    languageOptions: {
      globals: {
        Buffer: false,
        console: false,
        performance: false,
        process: false,
        URL: false,
        clearInterval: false,
        setInterval: false,
        setTimeout: false,
      },
    },
    rules: { 'no-undef': 'error' },
  },
  // In the template of a project, documents come from cdk8s's `Yaml.load`, which returns `any`.
  { files: ['**/*.js', '**/*.mjs', 'templates/**'], ...tseslint.configs.disableTypeChecked },
  {
    // Of node:test, which waits for its tests by itself.
    files: ['examples/**/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', name: 'test', package: 'node:test' }] },
      ],
    },
  },
  {
    files: ['test/**'],
    rules: { '@typescript-eslint/no-non-null-assertion': 'off' },
  },
);
