import js from "@eslint/js";
import stylistic from "@stylistic/eslint-plugin";
import { defineConfig } from "eslint/config";
import ts from "typescript-eslint";

const format = stylistic.configs.customize({
  arrowParens: true,
  braceStyle: "1tbs",
  quotes: "double",
  semi: true,
});

export default defineConfig(
  { ignores: ["dist"] },
  js.configs.recommended,
  ts.configs.recommended,
  format,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "@stylistic/list-style": "off",
      "@stylistic/max-len": ["error", { code: 100 }],
      "@stylistic/max-statements-per-line": "off",
      "@stylistic/multiline-ternary": "off",
      "@stylistic/no-mixed-operators": "off",
      "@stylistic/operator-linebreak": "off",
      "@stylistic/quotes": ["error", "double", { avoidEscape: true }],
      "@typescript-eslint/no-non-null-assertion": "off",
      "prefer-const": ["error", { destructuring: "all" }],
    },
  },
  { files: ["*.js"], languageOptions: { globals: { console: "readonly", process: "readonly" } } },
);
