// How is a page put together that needs no network and runs nothing but its own scripts?
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse::html {

struct Page {
  std::string title;
  std::string data;                       // JSON that the scripts read from the element "data"
  std::vector<std::string_view> styles;   // CSS, in order
  std::vector<std::string_view> scripts;  // JavaScript, in order
  std::string licences;                   // of what is inlined, as a comment
  bool may_connect = false;               // to the server that it came from
};

// One file: nothing is loaded from elsewhere, which its content security policy also forbids; inline scripts
// and styles are named there by hash. Title and data are escaped, whatever they hold. The same page gives the
// same bytes.
std::string write_page(const Page& page);

// What scripts of both pages share: the pipeline view, curves (uPlot, with its licence) and their style.
Page shared_page();

// JSON as it may stand inside a script element: no tag can end it.
std::string inline_json(const std::string& json);

}  // namespace rehearse::html
