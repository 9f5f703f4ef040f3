// Order of search results: pages whose title has the most words of the query come first, the changelog
// last. Sphinx's own order rates a title with one word of the query like one with all of them.
"use strict";

const query = new URLSearchParams(window.location.search).get("q") || "";
const words = query.toLowerCase().split(/\W+/).filter(Boolean);

// eslint-disable-next-line no-unused-vars -- read by Sphinx's searchtools.js
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, , , score]) => {
    const titleWords = new Set(title.toLowerCase().split(/\W+/));
    const share = words.filter((word) => titleWords.has(word)).length / (words.length || 1);
    return (page === "CHANGELOG" ? -20 : 0) + score + 30 * share;
  },
};
